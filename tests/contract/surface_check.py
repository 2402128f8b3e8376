"""Finds, in source text, what is used of pyservicemaker's objects that `pyservicemaker_surface` does not know.

Objects are followed from where they enter (a root, by its text) through assignments, loops and results of members.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.contract.pyservicemaker_surface import CLASSES, EXTENSIONS


@dataclass
class Uses:
    """``members`` (class, name) that are used; ``problems`` and ``unguarded`` extensions as "line: what"."""

    members: set[tuple[str, str]] = field(default_factory=set)
    roots: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    unguarded: list[str] = field(default_factory=list)


def uses_of(source: str, roots: Mapping[str, str]) -> Uses:
    """Check one module.

    Args:
        source: its text.
        roots: expression (as `ast.unparse` writes it, or the name of a parameter) -> class of the table.
    """
    checker = _Checker(roots)
    checker.visit(ast.parse(source))
    return checker.uses


class _Checker(ast.NodeVisitor):
    def __init__(self, roots: Mapping[str, str]) -> None:
        self.uses = Uses()
        self._roots = roots
        self._kinds: dict[str, str] = {}  # variable -> class
        self._guarded: set[str] = set()  # extensions that the function asks for with hasattr

    # --- where objects come from --------------------------------------------------------------------------------------

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module != "pyservicemaker":
            return
        for alias in node.names:
            kind = self._member(node, "module", alias.name)
            self._kinds[alias.asname or alias.name] = kind if kind in ("osd",) else f"new {kind}"

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, guarded = dict(self._kinds), self._guarded
        self._guarded = {
            call.args[1].value
            for call in ast.walk(node)
            if isinstance(call, ast.Call)
            and ast.unparse(call.func) == "hasattr"
            and isinstance(call.args[1], ast.Constant)
        }
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            self._bind(argument.arg, self._root(argument.arg))
        for statement in node.body:
            self.visit(statement)
        self._kinds, self._guarded = outer, guarded

    def visit_Assign(self, node: ast.Assign) -> None:
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        kinds = [self._kind(value) for value in values]
        for target in node.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            for position, name in enumerate(names):
                if isinstance(name, ast.Name):
                    self._bind(name.id, kinds[position] if len(kinds) == len(names) else "")
                else:
                    self._kind(name)

    def visit_For(self, node: ast.For) -> None:
        self._loop(node.target, node.iter)
        for statement in [*node.body, *node.orelse]:
            self.visit(statement)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._loop(node.target, node.iter)
        for condition in node.ifs:
            self.visit(condition)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        for generator in node.generators:
            self.visit(generator)
        self.generic_visit(node)

    visit_GeneratorExp = visit_SetComp = visit_DictComp = visit_ListComp  # type: ignore[assignment]  # noqa: N815

    def _loop(self, target: ast.expr, iterable: ast.expr) -> None:
        kind = self._kind(iterable)
        if isinstance(target, ast.Name):
            self._bind(target.id, kind[1:] if kind.startswith("*") else "")

    def _bind(self, name: str, kind: str) -> None:
        self._kinds.pop(name, None)
        if kind:
            self._kinds[name] = kind

    # --- expressions --------------------------------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._kind(node)

    def visit_Call(self, node: ast.Call) -> None:
        self._kind(node)

    def _kind(self, node: ast.expr) -> str:
        """The class of an expression, empty if it is none of the table's; what is used on the way is checked."""
        root = self._root(ast.unparse(node))
        if root:
            return root
        if isinstance(node, ast.Name):
            return self._kinds.get(node.id, "")
        if isinstance(node, ast.Attribute):
            owner = self._kind(node.value)
            return self._member(node, owner, node.attr) if owner in CLASSES else ""
        if isinstance(node, ast.Call):
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                self.visit(argument)
            return self._kind(node.func).removeprefix("new ")
        if isinstance(node, ast.Subscript) and self._kind(node.value) == "Pipeline":
            return "Node"
        self.generic_visit(node)
        return ""

    def _root(self, text: str) -> str:
        if text in self._roots:
            self.uses.roots.add(text)
        return self._roots.get(text, "")

    def _member(self, node: ast.AST, owner: str, name: str) -> str:
        where = f"{node.lineno}: {owner}.{name}"  # type: ignore[attr-defined]
        if (owner, name) in EXTENSIONS:
            if name not in self._guarded:
                self.uses.unguarded.append(where)
            return ""
        how, _, result = CLASSES[owner].get(name, "").partition(" ")
        self.uses.members.add((owner, name))
        if not how:
            self.uses.problems.append(f"{where} does not exist")
        elif isinstance(getattr(node, "ctx", None), ast.Store) and how != "rw":
            self.uses.problems.append(f"{where} cannot be assigned")
        return result
