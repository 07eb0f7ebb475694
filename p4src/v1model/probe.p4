// Which packets are probes: DSCP bit 0 announces INT, and behind L4 a whole shim and INT-MD 2.1 header do follow.

control ProbeRecognition(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    // Packets that announced INT and brought none, by ingress port; they are sent on as the data they are.
    @id(ID_COUNTER_NOT_INT)
    counter(PORTS, CounterType.packets_and_bytes) not_int_counter;

    action clear_announcement() {
        hdr.ipv4.dscp = hdr.ipv4.dscp & DSCP_WITHOUT_INT;
        not_int_counter.count((bit<32>) standard_metadata.ingress_port);
    }

    action recognise() {
        meta.is_probe = 1;
    }

    apply {
        if (hdr.ipv4.dscp & ~DSCP_WITHOUT_INT != 0) {
            bit<32> ipv4_bytes = (bit<32>) hdr.ipv4.total_length;
            bit<32> int_bytes = INT_SHIM_BYTES + ((bit<32>) hdr.int_shim.length << 2);
            if (hdr.int_md.isValid() && hdr.int_shim.length >= INT_HEADER_WORDS
                    && ETHERNET_BYTES + ipv4_bytes <= standard_metadata.packet_length
                    && (hdr.tcp.isValid() && IPV4_BYTES + TCP_BYTES + int_bytes <= ipv4_bytes
                        || hdr.udp.isValid() && UDP_BYTES + int_bytes <= (bit<32>) hdr.udp.length
                           && IPV4_BYTES + (bit<32>) hdr.udp.length <= ipv4_bytes)) {
                recognise();
            } else {
                clear_announcement();
            }
        }
    }
}
