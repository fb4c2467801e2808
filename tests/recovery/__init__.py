"""Tools that prove recovery.

chain_task, chain       a task whose committed output is a hash chain; what its topics must hold, and the verdict whether they do
observer, audit         what a job says of its owners in Kafka, tailed while it runs; that no task ever had two live ones
outputs, state          its committed output, followed while it runs; whether the local stores that it left are intact
faults, relay, driver   a job's processes and signals to exactly those, recovery times; a link that can be cut, a run that has such links
job, load, watch        the job as a user runs it, a steady load, samples of its status
trial, report           all of these around one run, and what is to be said of it at the end
scenario, run           seeded faults for minutes or hours: python -m tests.recovery.run
"""
