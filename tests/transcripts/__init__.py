"""Stories of small clusters to read: what arrives, what a round decides, what brokers are told.

A story is a text file. Its heading says what to look for. A block is lines of input, a line of
dashes, and the output, which `python -m tests.transcripts --rewrite` writes again. A line of input
that begins with # is for the reader.

of the fleet, in the first block
  set NAME VALUE            a setting that differs from its default
  broker a b0 20, b1 20     a broker, its bundles, and the MB/s of each
of what happens, before a batch
  load b0 40                from now on b0 carries so many MB/s
  extra a 10                from now on a is busy by 10 % that no traffic explains
  noise 5                   from now on bundles' figures vary, with a deviation of 5 %
  crash a, return a         a ends, or starts again without bundles; the watcher says so
  disobey a, obey a         a leaves its commands lying; or takes them up
  intent KIND ...           an operator's intent, such as: intent drain a
of the job
  batch 1:00                at 1 min 0 s every broker reports, and a batch reads what has arrived
  batch 1:00 to 9:00        one a minute; one that is like the one before is not told again
  again                     Spark repeats the last batch
  why b0                    what `trimtab why` answers of the last round

1 MB/s costs 1 % of a broker's processor, so a broker's usage is the sum of its bundles' figures.
Bundles b0, b1 ... are the equal ranges of the namespace t/b, p0 is of t/p. b0.0 and b0.1 are the
children of b0, and b0+b1 is what the two were merged to. Brokers obey at once, unless told not to;
what they change of the records is read by the next batch.
"""
