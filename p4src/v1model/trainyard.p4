// Trainyard's pipeline for v1model targets: BMv2 and the emulator.

#include <core.p4>
#include <v1model.p4>

#include "../shared/constants.p4"
#include "../shared/ids.p4"
#include "../shared/headers.p4"
#include "structs.p4"
#include "parser.p4"
#include "checksum.p4"
#include "ingress.p4"
#include "egress.p4"
#include "deparser.p4"

@pkginfo(name="trainyard", version="0.1.0")
V1Switch(TrainyardParser(), TrainyardVerifyChecksum(), ingress(), egress(), TrainyardComputeChecksum(),
         TrainyardDeparser()) main;
