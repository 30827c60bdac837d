"""Names of failing tests, as runners print them."""

import pytest

from holdfast.features.checks.policy import read_failures

OUTPUTS = {
    "pytest": ("FAILED tests/test_a.py::test_b[x-1] - assert 1 == 2\nERROR tests/test_c.py - ImportError\n",
               ["tests/test_a.py::test_b[x-1]", "tests/test_c.py"]),
    "unittest": ("FAIL: test_x (pkg.T.test_x)\nRan 5 tests in 0.001s\n", ["test_x (pkg.T.test_x)"]),
    "jest": ("  ● cart › adds\n\nTests: 1 failed\n", ["cart › adds"]),
    "vitest": (" FAIL  src/a.test.ts > adds\n", ["src/a.test.ts > adds"]),
    "go test": ("--- FAIL: TestB (0.00s)\n    x_test.go:5: no\n", ["TestB"]),
    "cargo test": ("test a::ok ... ok\ntest a::bad ... FAILED\n", ["a::bad"]),
    "maven": ("[ERROR]   CartTest.adds:12 expected\n", ["CartTest.adds"]),
    "gradle": ("CartTest > adds FAILED\n", ["CartTest > adds"]),
    "rspec": ("rspec ./spec/a_spec.rb:12 # adds\n", ["./spec/a_spec.rb:12"]),
    "phpunit": ("1) CartTest::adds\n", ["CartTest::adds"]),
    "ctest": ("\t  3 - adds (Failed)\n", ["adds"]),
    "mocha": (
        "  cart\n    1) adds\n\n  0 passing (3ms)\n  1 failing\n\n  1) cart\n       adds:\n     Error: no\n", ["cart adds"],
    ),
    "node": ("not ok 2 - adds\n", ["adds"]),
    "bun": ("(fail) adds [0.1ms]\n", ["adds"]),
    "make": ("anything\n", []),
}  # fmt: skip


@pytest.mark.parametrize("runner", OUTPUTS)
def test_names(runner: str) -> None:
    output, names = OUTPUTS[runner]
    assert read_failures(runner, output) == names
