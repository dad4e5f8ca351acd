"""Fuzzing of everything that reads a file: ``python -m tests.fuzz [PARSER...] --seconds 60 --inputs 10000``.

    mutation.py   how bytes and words are damaged, and what is written from scratch
    containers.py damage inside HDF5, npz, gzip and YAML, where a random byte would only break the container
    parsers.py    the parsers, with valid files made by our own writers
    worker.py     one process that tries inputs on one parser, under limits and with its doings watched
    campaign.py   starts workers, notices those that die or hang, counts

Input `k` of seed `s` of a parser depends on these three alone: ``--only K`` tries it again.
"""
