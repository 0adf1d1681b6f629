# The few commands people type; each is also in CONTRIBUTING.md.
.PHONY: app test fast lint bench

app:    ## open the app
	.venv/bin/streamlit run app/main.py

test:   ## everything, as CI runs it
	.venv/bin/pytest -n 2

fast:   ## without what trains for long or drives a browser
	.venv/bin/pytest -n 2 -m "not slow"

lint:
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports

bench:
	.venv/bin/python -m masktune bench --quick
