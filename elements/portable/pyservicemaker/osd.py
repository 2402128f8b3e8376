"""pyservicemaker's ``osd`` submodule. It only names the types, so importing it under both module names is harmless."""

from elements.portable.osd import *  # noqa: F403
