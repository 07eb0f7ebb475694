// Egress: what each port has sent, how busy it is, and what probes and ECN learn of that.

#include "utilisation.p4"
#include "int_transit.p4"
#include "l4_checksum.p4"

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    @name(".egress") IntAdmission() int_admission;
    @name(".egress") Utilisation() utilisation;
    @name(".egress") IntMetadata() int_metadata;
    @name(".egress") L4Checksum() l4_checksum;

    // Packets and bytes per (port, level), at index port * 8 + level.
    @id(ID_COUNTER_LEVEL)
    counter(LEVEL_COUNTER_SIZE, CounterType.packets_and_bytes) level_counter;

    bit<19> mark_from_depth;

    // Mark ECN-capable packets that found at least so many packets in their queue.
    @id(ID_ACTION_MARK_FROM)
    action mark_from(bit<19> depth_packets) {
        mark_from_depth = depth_packets;
    }

    // Egress ports that mark congestion experienced. A port without an entry takes the default, which can be changed:
    // a depth that no queue reaches.
    @id(ID_TABLE_ECN)
    table ecn {
        key = { standard_metadata.egress_port: exact @name("egress_port"); }
        actions = { mark_from; }
        default_action = mark_from(0x7FFFF);
        size = PORTS;
    }

    action mark_congestion_experienced() {
        hdr.ipv4.ecn = CONGESTION_EXPERIENCED;
    }

    apply {
        level_counter.count(20w0 ++ standard_metadata.egress_port ++ meta.level);
        if (meta.is_probe == 1) {
            int_admission.apply(hdr, meta, standard_metadata);
        }
        utilisation.apply(meta, standard_metadata);
        if (meta.is_probe == 1) {
            if (meta.added_words != 0) {
                int_metadata.apply(hdr, meta, standard_metadata);
            }
            l4_checksum.apply(hdr, meta);
        }
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != 0) {
            ecn.apply();
            if (standard_metadata.enq_qdepth >= mark_from_depth) {
                mark_congestion_experienced();
            }
        }
    }
}
