"""When building a program fails, the error says what failed, and blames only what is the user's."""

import os
from dataclasses import replace

import pytest

import glmbrian as glm
from glmbrian.core.objectives import FirstToSpike
from glmbrian.devices.compiling import compile_project, first_errors
from glmbrian.devices.problem import Network

NETWORK = Network(2, 2, 4, glm.IndicatorBasis(2), None, glm.get_activation("sigmoid"))


class Own(FirstToSpike):
    name = "mine"


def failing(tmp_path, network, log="a.cpp:3:1: error: 'x' was not declared"):
    (tmp_path / "log").write_text(f"g++ -c a.cpp\n{log}\nmake: *** [makefile:3: a.o] Error 1\n")
    with pytest.raises(RuntimeError) as raised:
        compile_project("cat log; exit 2", tmp_path, os.environ, network, "cpp_standalone")
    return str(raised.value)


def test_the_packages_own_code_is_not_the_users(tmp_path):
    said = failing(tmp_path, NETWORK)
    assert said.startswith("compiling for device='cpp_standalone' failed: 'cat log; exit 2' ended with")
    assert said.endswith("The first errors:\na.cpp:3:1: error: 'x' was not declared")
    assert "None of its C++ code is your own: check the compiler" in said
    assert "activation" not in said and "objective" not in said


def test_the_users_code_is_named(tmp_path):
    own = replace(NETWORK.activation, name="steep")
    said = failing(tmp_path, replace(NETWORK, activation=own))
    assert "your own activation 'steep': check the C++ code first" in said
    said = failing(tmp_path, replace(NETWORK, activation=own, objective=Own()))
    assert "your own activation 'steep' and objective 'mine'" in said


@pytest.mark.parametrize(
    "log, said",
    [
        ("\n".join(["a.hpp:1: error: x", "  1 | x"] * 3), "a.hpp:1: error: x"),
        ("a.hpp:1: warning: unused\n/usr/bin/ld: cannot find -lgsl\nmore", "/usr/bin/ld: cannot find -lgsl"),
        ("a.o: in function `main':\na.cpp: undefined reference to `f()'", "a.cpp: undefined reference to `f()'"),
        ("fatal error: Killed signal terminated program cc1plus\nx", "fatal error: Killed signal terminated program cc1plus"),
        ("x.cpp:1:10: fatal error: y.hpp: No such file or directory\ncompilation terminated.",
         "x.cpp:1:10: fatal error: y.hpp: No such file or directory"),
        ("one\ntwo", "one\ntwo"),
        ("\n".join(f"error: {n}" for n in range(50)), "\n".join(f"error: {n}" for n in range(6))),
    ],
)  # fmt: skip
def test_first_errors(log, said):
    assert first_errors(log) == said
