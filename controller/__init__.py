"""The controller: a daemon that decides the paths and priorities of training jobs' flows, and programs the switches.

====================== ===================================================================
``api``                the gRPC services, for hosts and for operators
``registry``           registered jobs, their leases, and the journal that commits changes
``telemetry``          the reports of probes: paths, loads and losses
``links``              the health of links
``profiling``          measurement of jobs that report no profile
``planning``           Snapshots, the decision pipeline and the planning loop
``rules``              a Plan as rules for switches
``southbound``         the switches, over P4Runtime and gNMI
``store``, ``record``  the database, and the record of decisions in it
``leadership``         leader election among controllers that share a database
``web``                health and metrics over HTTP
``process``            the daemon
====================== ===================================================================

Some words have one meaning in all of them:

* A change of the registry is *committed* once it is on the database's disk. Only then it is acknowledged and planned.
* A Plan or a request to a switch is *recorded* in the background, for replay and audit. Nothing waits for it.
* ``flush`` waits until background writes are done, or have failed.
* A commit is *uncertain* where the database has not said whether it happened.
* A planner is *settled* once the Plan of the current state is in force.
"""
