"""How Brian generates the code of an operation: other code, one code for all runs, its precision, its target.

Operations create their code objects when a run begins, so these functions give them a class that does
it differently.
"""

import weakref
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from brian2 import NumpyCodeObject
from brian2.codegen.codeobject import create_runner_codeobj
from brian2.core.variables import ArrayVariable, Constant
from brian2.devices.device import get_device
from brian2.groups.group import CodeRunner

from ..target import current_target, runs_at_once
from .preferences import double_precision


def _specialise(part: Any, changes: type) -> None:
    """Let the methods of the class `changes` take precedence over those of an object of Brian's."""
    part.__class__ = _with_changes(type(part), changes)  # type: ignore[arg-type]


@cache
def _with_changes(brians_class, changes):
    return type(brians_class)(brians_class.__name__, (changes, brians_class), {})


def replace_pathway_code(pathway: Any, choose: Callable[[], tuple[Any, str] | None]) -> None:
    """Let the method `choose` say, before each run, what a synaptic pathway does in place of its own code.

    It returns a group and a statement that Brian then runs for that group, once in each step in which
    the pathway would run; or None for Brian's own code and queue.
    """
    _specialise(pathway, _ReplacedCode)
    pathway.add_attribute("choose")
    pathway.choose = weakref.WeakMethod(choose)  # Brian simulates objects for as long as they live


class _ReplacedCode:
    def create_code_objects(self, run_namespace):
        choose = self.choose()
        replacement = choose and choose()
        if replacement is None:
            super().create_code_objects(run_namespace)
            return
        group, code = replacement
        self.codeobj = create_runner_codeobj(
            group,
            code,
            "stateupdate",
            run_namespace={},
            name=f"{self.name}_codeobject*",
            check_units=False,
            codeobj_class=self.codeobj_class,
        )
        self.code_objects[:] = [weakref.proxy(self.codeobj)]


def share_code_of_runs(group: Any) -> None:
    """Make the runs of a standalone program share the code of a group's own operations.

    For each run Brian generates a C++ file for each operation, so that a program of hundreds of runs
    has thousands of files to compile, nearly all of them equal.
    """
    if not current_target().takes_several_runs:
        return
    for runner in group.contained_objects:
        if isinstance(runner, CodeRunner):
            _specialise(runner, _SharedCode)


class _SharedCode:
    def create_code_objects(self, run_namespace):
        super().create_code_objects(run_namespace)
        if runs_at_once(get_device()):
            return
        for number, new in enumerate(self.code_objects):
            old = _equal_code_object(new.name)
            if self.codeobj is not None and self.codeobj.name == new.name:
                self.codeobj = old
            self.code_objects[number] = weakref.proxy(old)


def _equal_code_object(name):
    """Return an earlier code object that does the same as the one called `name`, or this one itself.

    An earlier one takes its place in the program.
    """
    device = get_device()
    new = device.code_objects[name]
    for old in device.code_objects.values():
        if old is new:
            break
        if old.template_name == new.template_name and _program_text(old) == _program_text(new):
            del device.code_objects[name]
            if name in device.profiled_codeobjects:
                device.profiled_codeobjects.remove(name)
            return old
    return new


def _program_text(code_object):
    """Return all that a code object contributes to the files of a program, without its name."""
    code = code_object.code
    texts = code.values() if isinstance(code, Mapping) else [code]
    files = [str(text).replace(code_object.name, "") for text in texts]
    constants = {
        name: variable.value if isinstance(variable, Constant) else variable
        for name, variable in code_object.variables.items()
        if isinstance(variable, (Constant, ArrayVariable))
    }
    return files, constants


def generate_in_double_precision(group: Any) -> None:
    """Make Brian generate a group's code without rounding its constants.

    If single precision is preferred, Brian rounds the numbers in expressions even where all
    variables are double, and potentials would differ in the eighth digit.
    """
    for runner in group.contained_objects:
        _specialise(runner, _DoublePrecision)


class _DoublePrecision:
    def before_run(self, run_namespace):
        with double_precision():
            super().before_run(run_namespace)


def use_numpy(group: Any) -> None:
    """Run a group on Brian's NumPy target, whatever the preferences.

    For groups without an argument `codeobj_class`.
    """
    for part in (group, *group.contained_objects):
        part.codeobj_class = NumpyCodeObject
