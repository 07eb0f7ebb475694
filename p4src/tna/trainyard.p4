// Trainyard's pipeline for Tofino: the twin of v1model/trainyard.p4, table for table. docs/tofino.md says what differs.

#include <core.p4>
#include <tna.p4>

#include "../shared/constants.p4"
#include "../shared/ids.p4"
#include "../shared/headers.p4"
#include "structs.p4"
#include "parser.p4"
#include "ingress.p4"
#include "egress.p4"
#include "deparser.p4"

Pipeline(IngressParser(), ingress(), IngressDeparser(), EgressParser(), egress(), EgressDeparser()) pipe;

@pkginfo(name="trainyard", version="0.1.0")
Switch(pipe) main;
