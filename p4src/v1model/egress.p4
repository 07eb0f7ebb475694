// Egress: what each port has sent from each of its queues.

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    // Packets and bytes per (port, level), at index port * 8 + level.
    @id(ID_COUNTER_LEVEL)
    counter(LEVEL_COUNTER_SIZE, CounterType.packets_and_bytes) level_counter;

    apply {
        level_counter.count(20w0 ++ standard_metadata.egress_port ++ meta.level);
    }
}
