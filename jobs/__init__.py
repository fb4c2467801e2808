"""Example jobs: each a tested product with its data generator here, its job file in `config/` and its tests in `tests/jobs/`."""
