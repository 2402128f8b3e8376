"""A catalogue of a few elements, for tests without GStreamer."""

from collections.abc import Mapping

from pipelines.definition import PropertyInfo

ELEMENTS: dict[str, Mapping[str, PropertyInfo]] = {
    "queue": {
        "name": PropertyInfo("string"),
        "max-size-buffers": PropertyInfo("int", 0, 4294967295),
        "max-size-bytes": PropertyInfo("int", 0, 4294967295),
        "max-size-time": PropertyInfo("int", 0, 18446744073709551615),
        "current-level-buffers": PropertyInfo("int", 0, 4294967295, writable=False),
        "leaky": PropertyInfo("enum", choices={"no": 0, "upstream": 1, "downstream": 2}),
        "silent": PropertyInfo("bool"),
    },
    "videobalance": {
        "name": PropertyInfo("string"),
        "contrast": PropertyInfo("float", 0.0, 2.0),
        "hue": PropertyInfo("float", -1.0, 1.0),
    },
    "capsfilter": {"name": PropertyInfo("string"), "caps": PropertyInfo("other")},
    "fakesink": {
        "name": PropertyInfo("string"),
        "dump": PropertyInfo("bool"),
        "last-message": PropertyInfo("string"),
        "state-error": PropertyInfo("enum", choices={"none": 0, "null-to-ready": 1}),
    },
}


class FakeCatalog:
    """Knows `ELEMENTS`, and ``broken``, which cannot be loaded."""

    def factories(self) -> set[str]:
        return {*ELEMENTS, "broken"}

    def properties(self, factory: str) -> Mapping[str, PropertyInfo] | None:
        return ELEMENTS.get(factory)
