"""YAML text to a `Document`: PyYAML's composer for the syntax (it keeps places), our own reading of values."""

from __future__ import annotations

from collections.abc import Iterator

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from pipelines.definition.document import Document
from pipelines.definition.problems import DefinitionError, KeyPath, Place, Problem
from pipelines.definition.scalars import Scalar

MAX_VALUES = 20_000
"""Most values of one definition after aliases are expanded: an end to 'billion laughs'."""

MAX_DEPTH = 50
"""Most levels of lists and mappings in each other."""

_KNOWN_TAGS = {
    ScalarNode: BaseResolver.DEFAULT_SCALAR_TAG,
    SequenceNode: BaseResolver.DEFAULT_SEQUENCE_TAG,
    MappingNode: BaseResolver.DEFAULT_MAPPING_TAG,
}
_SYNTAX = (
    ("nested too deeply", f"more than {MAX_DEPTH} levels", ""),
    ("'\\t'", "a tab is used to indent", "use spaces"),
    ("expected a single document", "a second document starts here", "a file holds one definition: remove this '---'"),
    ("undefined alias", "an alias ('*name') has no anchor ('&name') before it", ""),
    ("duplicate anchor", "the same anchor ('&name') is given twice", ""),
    ("mapping values are not allowed", "a ': ' is not possible here", "quote text that has ': ', write 'key: value'"),
    ("could not find expected ':'", "a key without ':'", "write 'key: value'"),
    ("unknown escape", "a backslash in double quotes begins an escape", "use single quotes"),
    ("cannot start any token", "text cannot start with this character", "put the text in quotes"),
    ("while scanning a quoted scalar", "a quote is not closed", ""),
    ("while parsing a flow", "a bracket is not closed before this, or a ',' is missing", ""),
    ("while parsing a block mapping", "this line does not fit the mapping it is in", "check the indentation"),
    ("while parsing a block collection", "this line does not fit the list it is in", "check the indentation"),
)
"""What PyYAML says (a part of it), what we say, and a hint."""

_AT_CONTEXT = ("while scanning a simple key", "while scanning a quoted scalar")
"""What begins too early to be found at the place where PyYAML notices it."""


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):  # type: ignore[misc]
    """PyYAML up to nodes, without YAML 1.1's guesses about their types."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self.depth = 0

    def descend_resolver(self, current_node: Node | None, current_index: object) -> None:
        """Called before each node; here to end the recursion in time."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=mark)

    def ascend_resolver(self) -> None:
        """Called after each node."""
        self.depth -= 1


def parse_yaml(text: str, file: str) -> Document:
    """Read YAML text. Problems with single values (duplicate keys, tags …) are in the document's ``problems``.

    Args:
        text: the YAML.
        file: what messages call it.

    Raises:
        DefinitionError: if it is not YAML, or more than one document.
    """
    loader = None
    try:
        loader = _Loader(text)
        return _Builder(file).document(loader.get_single_node())
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        raise _error(file, line, column, f"U+{ord(text[error.position]):04X} is not text", "remove it") from None
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, file, loader) from None
    except (ValueError, OverflowError):  # PyYAML on escapes like "\UFFFFFFFF"
        raise _error(file, *_position(loader), "an escape with \\u or \\U is no character") from None


def _error(file: str, line: int | None, column: int | None, message: str, hint: str = "") -> DefinitionError:
    return DefinitionError([Problem(file, line, column, "", message, hint)])


def _position(loader: _Loader | None) -> tuple[int | None, int | None]:
    return (loader.line + 1, loader.column + 1) if loader is not None else (None, None)


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str, loader: _Loader | None) -> DefinitionError:
    found = f"{error.context or ''} {error.problem or ''}"
    mark = error.context_mark if error.context in _AT_CONTEXT else error.problem_mark
    unknown = (f"not valid YAML: {error.problem}", "")
    message, hint = next(((message, hint) for part, message, hint in _SYNTAX if part in found), unknown)
    if mark is None:
        return _error(file, None, None, message, hint)
    if error.context == "while parsing a flow mapping" and text[: mark.index + 1].endswith("${"):
        hint = "put '${VAR}' in quotes inside { }"
    elif "while parsing a flow" in found and loader is not None and loader.marks:
        hint = f"the bracket is in line {loader.marks[-1].line + 1}"  # the innermost collection that is open
    return _error(file, mark.line + 1, mark.column + 1, message, hint)


class _Builder:
    """Nodes to data. Aliases are copied where they are used, so every value has one path."""

    def __init__(self, file: str) -> None:
        self.result = Document(None, file)
        self.count = 0
        self.open: list[int] = []

    def document(self, root: Node | None) -> Document:
        if root is not None:
            self.result.data = self.value(root, ())
        return self.result

    def place(self, node: Node) -> Place:
        text = node.value if isinstance(node, ScalarNode) else ""
        return Place(self.result.file, node.start_mark.line + 1, node.start_mark.column + 1, text)

    def enter(self, node: Node) -> None:
        self.count += 1
        place = self.place(node)
        if self.count > MAX_VALUES:
            raise _error(
                place.file, place.line, place.column, f"more than {MAX_VALUES} values once aliases are expanded"
            )
        if len(self.open) > MAX_DEPTH:
            raise _error(
                place.file, place.line, place.column, f"more than {MAX_DEPTH} levels once aliases are expanded"
            )
        if id(node) in self.open:
            raise _error(place.file, place.line, place.column, "an alias ('*name') inside its own anchor ('&name')")

    def value(self, node: Node, path: KeyPath) -> object:
        self.enter(node)
        self.result.values[path] = self.place(node)
        if node.tag != _KNOWN_TAGS[type(node)]:
            self.result.problem(path, f"YAML tags like '{node.tag}' are not supported", "remove it")
            return None
        if isinstance(node, ScalarNode):
            scalar = Scalar(node.value, plain=node.style is None)
            return None if scalar.null else scalar
        self.open.append(id(node))
        try:
            if isinstance(node, SequenceNode):
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            return {key.value: self.value(value, (*path, key.value)) for key, value in self.items(node, path)}
        finally:
            self.open.pop()

    def items(self, node: Node, path: KeyPath) -> list[tuple[ScalarNode, Node]]:
        """Keys and values of a mapping, with the mappings that ``<<`` names merged in below its own."""
        merged: dict[str, tuple[ScalarNode, Node]] = {}
        own: dict[str, tuple[ScalarNode, Node]] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self.result.values[(*path, "?")] = self.place(key)
                self.result.problem((*path, "?"), "a key must be text, not a list or a mapping")
            elif key.value == "<<" and key.style is None:
                for mapping in self.merged_mappings(value, (*path, "<<")):
                    merged = {**{k.value: (k, v) for k, v in self.items(mapping, path)}, **merged}
            elif key.value in own:
                first = own[key.value][0].start_mark.line + 1
                self.result.values[(*path, key.value)] = self.place(key)
                self.result.problem(
                    (*path, key.value), f"key '{key.value}' is already given in line {first}", "remove one"
                )
            else:
                own[key.value] = (key, value)
        for name, (key, _) in (merged | own).items():
            self.result.keys[(*path, name)] = self.place(key)
        return list((merged | own).values())

    def merged_mappings(self, node: Node, path: KeyPath) -> Iterator[MappingNode]:
        for mapping in node.value if isinstance(node, SequenceNode) else [node]:
            if not isinstance(mapping, MappingNode):
                self.result.values[path] = self.place(mapping)
                self.result.problem(path, "can only merge a mapping", "write '<<: *anchor'")
                continue
            self.enter(mapping)
            self.open.append(id(mapping))
            yield mapping
            self.open.pop()
