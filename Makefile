# Nothing but make and a Python from 3.11 to 3.14 is needed. Everything is installed into .venv from pinned, hashed
# wheels; a stamp file in .venv remembers what is there, so that nothing is installed twice.
#
#   make run      the bundled study: report, result.json and verdict
#   make test     every test (a real Chromium included)
#   make check    format, lint, types, layers, installed files, generated docs
#   make bench    speed, memory and the false-approval simulation
#   make clean    remove what make made; reports stay

.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: run test check bench clean chromium format lint types layers startup-files docs

# A setting of the calling shell must not reach into the environment that is made here.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV

PY := .venv/bin/python
INSTALL := $(PY) -m pip install --quiet --no-deps --no-compile
PINNED := $(INSTALL) --require-hashes --only-binary :all:
# -S: site-packages is looked at before anything in it may run.
STARTUP_FILES := $(PY) -I -S requirements/startup_files.py
# Bytecode is written once, by all cores, not anew by every process where PYTHONDONTWRITEBYTECODE is set. Packages
# carry a few files that are templates and not Python, which may fail to compile; their tests are left out.
COMPILE := env -u PYTHONDONTWRITEBYTECODE $(PY) -m compileall -q -j 0 -x 'site-packages/.*/tests?/'
# Looked up when it is used: it may have been installed just before.
CHROMIUM = $(or $(EVALKIT_CHROMIUM),$(shell command -v chromium || command -v chromium-browser || command -v google-chrome))

run: .venv/.run
	@$(PY) -m evalkit route-sweep; code=$$?; \
	case $$code in \
	0|1|3) ;; \
	*) exit $$code ;; \
	esac

# A file stays with one worker, so that what it sets up (a browser, a study) is set up once.
test: .venv/.dev chromium
	EVALKIT_CHROMIUM="$(or $(CHROMIUM),/usr/bin/chromium)" $(PY) -m pytest -n 2 --dist loadfile

check: format lint types layers startup-files docs

format: .venv/.dev
	$(PY) -m ruff format --check .

lint: .venv/.dev
	$(PY) -m ruff check .

types: .venv/.dev
	$(PY) -m mypy

layers: .venv/.dev
	.venv/bin/lint-imports --no-logo

startup-files: .venv/.dev
	$(STARTUP_FILES)

docs: .venv/.dev
	$(PY) docs/cli_reference.py --check

bench: .venv/.run
	$(PY) benchmarks/sweep.py --large
	$(PY) benchmarks/false_approval.py
	$(PY) benchmarks/best_router.py
	$(PY) benchmarks/false_worth_it.py
	$(PY) benchmarks/personal_data.py
	$(PY) benchmarks/logs.py
	$(PY) benchmarks/replay.py

clean:
	rm -rf .venv build dist evalkit.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find evalkit labelsets tests benchmarks docs requirements -name __pycache__ -type d -prune -exec rm -rf {} +

# The first Python on the PATH that fits, or the one named: make run PYTHON=/path/to/python3.12
.venv/.made:
	@for python in $(if $(PYTHON),"$(PYTHON)",.venv/bin/python python3.14 python3.13 python3.12 python3.11 python3 python); do \
		if "$$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then \
			echo "Making .venv with $$("$$python" -c 'import sys; print(sys.executable, sys.version.split()[0])')"; \
			[ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null || "$$python" -m venv --clear .venv || exit 1; \
			touch $@; exit 0; \
		fi; \
	done; \
	echo "evalkit needs a Python from 3.11 to 3.14 with venv and ensurepip, and found none on the PATH." >&2; \
	echo "Fix: install one (Debian: apt-get install python3-venv), or name it: make run PYTHON=/path/to/python3" >&2; \
	exit 2

# run.txt is a part of dev.txt with the same pins (a test proves it), so the two share one environment.
.venv/.run: .venv/.made requirements/run.txt pyproject.toml
	@echo "Installing evalkit from requirements/run.txt (once; takes a minute or two)"
	@$(PINNED) -r requirements/run.txt
	@$(STARTUP_FILES)
	@$(INSTALL) --no-build-isolation --editable .
	@$(COMPILE) .venv/lib evalkit >/dev/null 2>&1 || true
	@touch $@

.venv/.dev: .venv/.run requirements/dev.txt
	@echo "Installing what tests and checks need from requirements/dev.txt (once)"
	@$(PINNED) -r requirements/dev.txt
	@$(STARTUP_FILES)
	@$(COMPILE) .venv/lib >/dev/null 2>&1 || true
	@touch $@

# The reports are tested in a real browser. Without one those tests skip and say so; under CI they fail.
chromium:
	@[ -n "$(CHROMIUM)" ] || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing Chromium for the browser tests"; \
			{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
			|| echo "Chromium could not be installed: the browser tests cannot run." >&2; \
		else \
			echo "No Chromium found: the browser tests will be skipped." >&2; \
			echo "Fix: install it (Debian: apt-get install chromium), or name one: EVALKIT_CHROMIUM=/path/to/chrome make test" >&2; \
		fi; }
