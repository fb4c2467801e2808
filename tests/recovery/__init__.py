"""Tools that prove recovery: a job whose output is a hash chain, an observer of who owned what, faults, load, and a runner for them all."""
