// Egress: what each port has sent, how busy it is, and what probes and ECN learn of that.

#include "utilisation.p4"
#include "int_transit.p4"

control egress(inout egress_headers_t hdr, inout egress_metadata_t meta,
               in egress_intrinsic_metadata_t intrinsic, in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t for_deparser,
               inout egress_intrinsic_metadata_for_output_port_t for_output_port) {

    @name(".egress") IntAdmission() int_admission;
    @name(".egress") Utilisation() utilisation;
    @name(".egress") IntMetadata() int_metadata;

    // Packets and bytes per (port, level), at index port * 8 + level.
    @id(ID_COUNTER_LEVEL)
    Counter<bit<64>, bit<12>>(LEVEL_COUNTER_SIZE, CounterType_t.PACKETS_AND_BYTES) level_counter;

    bit<32> lacking_cells;                  // that the queue would need for a mark

    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) queue_cells; // widens

    action measure_packet() {
        meta.port_and_level = intrinsic.egress_port ++ hdr.bridged.level;
        meta.queue_cells = queue_cells.get({ 13w0, intrinsic.enq_qdepth });
    }

    action count_frame_alone() {
        meta.sent_bytes = meta.sent_bytes - BRIDGED_AND_FCS_BYTES;
    }

    // Mark ECN-capable packets that found at least so many cells in their queue.
    @id(ID_ACTION_MARK_FROM)
    action mark_from(bit<32> depth_cells) {
        lacking_cells = depth_cells |-| meta.queue_cells;
    }

    // Egress ports that mark congestion experienced. A port without an entry takes the default, which can be changed:
    // a depth that no queue reaches.
    @id(ID_TABLE_ECN)
    table ecn {
        key = { intrinsic.egress_port: exact @name("egress_port"); }
        actions = { mark_from; }
        default_action = mark_from(0x7FFFF);
        size = PORTS;
    }

    action mark_congestion_experienced() {
        hdr.ipv4.ecn = CONGESTION_EXPERIENCED;
    }

    apply {
        measure_packet();
        count_frame_alone();
        level_counter.count(meta.port_and_level, BRIDGED_AND_FCS_BYTES);
        if (hdr.int_md.isValid()) {
            int_admission.apply(hdr, meta, intrinsic);
        }
        utilisation.apply(meta, intrinsic, from_parser);
        if (meta.added_words != 0) {
            int_metadata.apply(hdr, meta, intrinsic, from_parser);
        }
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != 0) {
            ecn.apply();
            if (lacking_cells == 0) {
                mark_congestion_experienced();
            }
        }
    }
}
