# make demo         train and test a first-to-spike classifier on real MNIST digits
# make lint         check the code with ruff and mypy
# make test         run the tests
# make benchmark    compare speed with other implementations (BENCHMARK_ARGS=--quick)
# make docs         build the documentation into docs/_build
# make genn-env     set up an environment with brian2genn and the Brian 2 that it needs
# make test-genn    run the tests there
# make test-exhaustive  run thousands of tests of damaged files, odd arguments and threads (half an hour)
# make clean        remove everything that these made
#
# Each first sets up its own virtual environment, again if the sources have changed.
# PYTHON=python3.12 chooses another Python (GENN_PYTHON for brian2genn, which needs
# 3.10, 3.11 or 3.12), TESTS=tests/core some tests, PYTEST_ARGS=-x options.

PYTHON ?= python3
GENN_PYTHON ?= $(PYTHON)
TESTS ?= --pyargs glmbrian ./tests
PYTEST_ARGS ?=
BENCHMARK_ARGS ?=

version_of = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VERSION := $(call version_of,$(PYTHON))
GENN_VERSION := $(call version_of,$(GENN_PYTHON))

DEMO_ENV := .venv
BENCHMARK_ENV := .venv-benchmark-$(VERSION)
DOCS_ENV := .venv-docs-$(VERSION)
TEST_ENV := .venv-test-$(VERSION)
GENN_ENV := .venv-genn
# In variables, because a comma in the argument of a call would end it.
TEST_EXTRAS := [docs,interop,lint,test]
GENN_EXTRAS := [genn,test]
# Tests that try only a sample of all cases, unless GLMBRIAN_EXHAUSTIVE is 1.
EXHAUSTIVE := $(addprefix tests/,classifier/test_damaged_files.py classifier/test_classifier.py \
	core/test_objectives.py brian/test_stopping.py devices/test_exports.py \
	devices/test_hidden.py brian/test_coupling.py brian/test_encoding.py classifier/test_ensemble.py docs/test_notebooks.py \
	devices/test_adversarial.py interop/test_interop_nemos.py benchmarks/test_benchmark.py \
	classifier/test_files_of_0_1.py classifier/test_weights_of_0_2.py test_properties.py test_threads.py \
	training/test_hidden_neurons.py training/test_testing.py training/test_trainer.py training/test_updates.py \
	core/test_layers.py brian/test_existing_models.py brian/test_own_code.py brian/test_step_order.py brian/test_synapses.py \
	devices/test_simulation.py reproduce/test_reproduce_sweep.py classifier/test_predict_proba.py \
	robustness/test_attacks.py robustness/test_certificates.py \
	classifier/test_adversarial_training.py brian/test_neurons.py \
	population/test_penalties.py population/test_long_recordings.py devices/test_windows.py \
	classifier/test_hidden_layers.py reproduce/test_reproduce.py timed/test_any_times.py \
	population/test_separation.py)
# Tests that do not depend on the version of Brian 2 are not run again there.
GENN_WITHOUT := $(foreach name,benchmark datasets docs plotting reproduce,--ignore-glob='*/test_$(name)*')

SOURCES := setup.cfg pyproject.toml $(wildcard README.md data/*.* \
	glmbrian/*.py glmbrian/*/*.py glmbrian/*/*/*.py glmbrian/native/*.hpp \
)

# $(call install,python,its version,environment,extras)
define install
	@test -n '$(2)' || { echo '$(1) is not a Python that runs' >&2; exit 1; }
	test -x $(3)/bin/python$(2) || $(1) -m venv --clear $(3)
	rm -rf build glmbrian.egg-info
	$(3)/bin/python -m pip --disable-pip-version-check install '.$(4)'
	rm -rf build glmbrian.egg-info
	touch $@
endef

# The pytest command, unlike `python -m pytest`, does not put this folder on Python's
# path, so the installed package is tested. One process per core; the tests of a file
# stay together, since they share compiled programs.
# $(call pytest,environment,options)
define pytest
	$(1)/bin/python -m pip --disable-pip-version-check list
	$(1)/bin/pytest --numprocesses auto --dist loadfile --ignore-glob='*/glmbrian/data/*' $(2) $(PYTEST_ARGS) $(TESTS)
endef

.PHONY: demo lint test test-exhaustive benchmark docs genn-env test-genn clean

demo: $(DEMO_ENV)/installed-$(VERSION)
	$(DEMO_ENV)/bin/glmbrian train --classes 5 7 --n-steps 8 --n-basis 8 --n-epochs 60 \
		--decoding first-to-spike --device auto --output output/demo

lint: $(TEST_ENV)/installed-$(VERSION)
	$(TEST_ENV)/bin/ruff format --check
	$(TEST_ENV)/bin/ruff check
	$(TEST_ENV)/bin/mypy

test: $(TEST_ENV)/installed-$(VERSION)
	$(call pytest,$(TEST_ENV),)

test-exhaustive: TESTS = $(EXHAUSTIVE)
test-exhaustive: export GLMBRIAN_EXHAUSTIVE = 1
test-exhaustive: $(TEST_ENV)/installed-$(VERSION)
	$(call pytest,$(TEST_ENV),)

benchmark: $(BENCHMARK_ENV)/installed-$(VERSION)
	$(BENCHMARK_ENV)/bin/python benchmarks/compare.py $(BENCHMARK_ARGS)

docs: $(DOCS_ENV)/installed-$(VERSION)
	$(DOCS_ENV)/bin/python -m sphinx -W --keep-going -b html docs docs/_build

genn-env: $(GENN_ENV)/installed-$(GENN_VERSION)

test-genn: genn-env
	$(call pytest,$(GENN_ENV),$(GENN_WITHOUT))

$(DEMO_ENV)/installed-$(VERSION): $(SOURCES)
	$(call install,$(PYTHON),$(VERSION),$(DEMO_ENV),)

$(TEST_ENV)/installed-$(VERSION): $(SOURCES)
	$(call install,$(PYTHON),$(VERSION),$(TEST_ENV),$(TEST_EXTRAS))

$(BENCHMARK_ENV)/installed-$(VERSION): $(SOURCES)
	$(call install,$(PYTHON),$(VERSION),$(BENCHMARK_ENV),[benchmark])

$(DOCS_ENV)/installed-$(VERSION): $(SOURCES)
	$(call install,$(PYTHON),$(VERSION),$(DOCS_ENV),[docs])

$(GENN_ENV)/installed-$(GENN_VERSION): $(SOURCES)
	$(call install,$(GENN_PYTHON),$(GENN_VERSION),$(GENN_ENV),$(GENN_EXTRAS))

clean:
	rm -rf .venv .venv-test-* .venv-benchmark-* .venv-docs-* .venv-genn docs/_build output build dist glmbrian.egg-info \
		.pytest_cache .hypothesis
	find glmbrian tests data -name __pycache__ -prune -exec rm -rf {} +
