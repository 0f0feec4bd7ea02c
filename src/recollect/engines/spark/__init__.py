"""Beyond one machine: the same profile, statistics, evaluation, merge and compaction on Apache Spark.

Hides Spark. What is counted, and how, is in `profiles`; here is only who does it: `session` starts Spark, `inputs`
finds what to read and cuts it up, `reading` reads it, `maps` does so for maps, `exchange` brings equal keys together,
`parts` writes, and `profile`, `stats`, `evaluate`, `compact`, `budget` and `merge` are the doors. One definition, two
executions: the bytes are those of the embedded engine.

Invariants: only totals, samples and headers come to the driver; a task holds a bounded amount of memory and
spills the rest; a task that dies is done again by Spark and gives the same bytes.
"""
