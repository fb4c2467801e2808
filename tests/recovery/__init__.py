"""Tools that prove recovery.

chain_task, chain       a task whose committed output is a hash chain; what its topics must hold, and the verdict whether they do
observer, audit         what a job says of its owners in Kafka, tailed while it runs; that no task ever had two live ones
outputs, state          its committed output, followed while it runs; whether the local stores that it left are intact
faults, relay, driver   a job's processes and signals to exactly those, recovery times; a link that can be cut, a run that has such links
job, load, watch        the job as a user runs it, a steady load, samples of its status
repartition, repartition_task   a second job, which repartitions the output of the first, with a model and verdict of its own
damage, said            what becomes of local stores while nobody has them open; what a job's log says, by error codes
aborted, phases         what a job wrote and never committed, and what that says of the kills that it met
trial, report           all of these around one run, and what is to be said of it at the end
chaos, chaos_run, chaos_report   two jobs, with brokers, network and disks hit as well: python -m tests.recovery.run --chaos
scenario, run           seeded faults for minutes or hours: python -m tests.recovery.run
"""
