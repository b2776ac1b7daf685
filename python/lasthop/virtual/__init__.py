"""Linux kernels as programs, in virtual time: User Mode Linux with `time-travel=inf-cpu`.

A guest runs programs of this machine on a kernel of its own. Its clock advances only while all of its
processes wait, so that it sees neither the load of the machine nor its speed, and the same seed gives the
same bytes.
"""
