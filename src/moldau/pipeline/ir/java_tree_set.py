"""Java's TreeSet, for what is printed in its order.

A sorted list would do, were it not for elements whose order changes after they were put in: then what comes out depends
on which of them each new one was compared with, and so on the shape of the tree. It is a red-black tree, as in any
textbook. Start at `TreeSet`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["TreeSet"]

Element = TypeVar("Element")


class _Node(Generic[Element]):
    __slots__ = ("element", "is_red", "left", "parent", "right")

    def __init__(self, element: Element, parent: _Node[Element] | None) -> None:
        self.element = element
        self.parent = parent
        self.left: _Node[Element] | None = None
        self.right: _Node[Element] | None = None
        self.is_red = True


class TreeSet(Generic[Element]):
    """Elements in the order of `compare`, as it was when each of them was added."""

    def __init__(self, compare: Callable[[Element, Element], int]) -> None:
        self._compare = compare
        self._root: _Node[Element] | None = None

    def __iter__(self) -> Iterator[Element]:
        return self._from(self._root)

    def _from(self, node: _Node[Element] | None) -> Iterator[Element]:
        if node is not None:
            yield from self._from(node.left)
            yield node.element
            yield from self._from(node.right)

    def add(self, element: Element) -> None:
        """Put an element in, unless an equal one is met on the way down."""
        parent, current, order = None, self._root, 0
        while current is not None:
            order = self._compare(element, current.element)
            if order == 0:
                return
            parent, current = current, current.left if order < 0 else current.right
        node = _Node(element, parent)
        if parent is None:
            self._root = node
        elif order < 0:
            parent.left = node
        else:
            parent.right = node
        self._balance(node)

    def _balance(self, node: _Node[Element]) -> None:
        while node is not self._root and (parent := node.parent) is not None and parent.is_red:
            grandparent = parent.parent
            assert grandparent is not None  # a red node is never the root
            is_left = parent is grandparent.left
            uncle = grandparent.right if is_left else grandparent.left
            if uncle is not None and uncle.is_red:
                parent.is_red = uncle.is_red = False
                grandparent.is_red = True
                node = grandparent
                continue
            if node is (parent.right if is_left else parent.left):
                node = parent
                self._rotate(node, to_left=is_left)
                parent = node.parent
                assert parent is not None  # the child that was rotated up
            parent.is_red = False
            grandparent.is_red = True
            self._rotate(grandparent, to_left=not is_left)
        assert self._root is not None
        self._root.is_red = False

    def _rotate(self, node: _Node[Element], *, to_left: bool) -> None:
        risen = node.right if to_left else node.left
        assert risen is not None
        inner = risen.left if to_left else risen.right
        if to_left:
            node.right, risen.left = inner, node
        else:
            node.left, risen.right = inner, node
        if inner is not None:
            inner.parent = node
        risen.parent = node.parent
        if node.parent is None:
            self._root = risen
        elif node.parent.left is node:
            node.parent.left = risen
        else:
            node.parent.right = risen
        node.parent = risen
