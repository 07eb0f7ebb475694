// Which packets are probes: DSCP bit 0 announces INT, and behind L4 a whole shim and INT-MD 2.1 header do follow.
//
// Ingress does not know how long the frame is: that IPv4's length fits into it, nothing checks here.

control ProbeRecognition(inout ingress_headers_t hdr, inout ingress_metadata_t meta,
                         in ingress_intrinsic_metadata_t intrinsic) {

    // Packets that announced INT and brought none, by ingress port; they are sent on as the data they are.
    @id(ID_COUNTER_NOT_INT)
    Counter<bit<64>, PortId_t>(PORTS, CounterType_t.PACKETS_AND_BYTES) not_int_counter;

    // What is missing somewhere is not 0: differences that saturate replace comparisons of two fields.
    bit<16> segment_bytes;
    bit<16> udp_bytes;
    bit<16> tcp_bytes;
    bit<16> lacking_in_udp;
    bit<16> lacking_for_udp;
    bit<16> lacking_for_tcp;
    bit<8>  lacking_words;

    action measure() {
        segment_bytes = hdr.ipv4.total_length |-| 20;
        udp_bytes = (bit<16>) (hdr.int_shim.length ++ 2w0);
        tcp_bytes = (bit<16>) (hdr.int_shim.length ++ 2w0);
        lacking_words = INT_HEADER_WORDS |-| hdr.int_shim.length;
    }

    action add_headers() {
        udp_bytes = udp_bytes + 12;         // UDP's header and the shim
        tcp_bytes = tcp_bytes + 24;         // TCP's and the shim
    }

    action compare() {
        lacking_in_udp = udp_bytes |-| hdr.udp.length;
        lacking_for_udp = hdr.udp.length |-| segment_bytes;
        lacking_for_tcp = tcp_bytes |-| segment_bytes;
    }

    action clear_announcement() {
        hdr.ipv4.dscp = hdr.ipv4.dscp & DSCP_WITHOUT_INT;
        not_int_counter.count(intrinsic.ingress_port, FCS_BYTES);
    }

    action recognise() {
        meta.is_probe = 1;
        hdr.bridged.is_probe = 1;
    }

    apply {
        if (hdr.ipv4.dscp & ~DSCP_WITHOUT_INT != 0) {
            measure();
            add_headers();
            compare();
            if (hdr.int_md.isValid() && lacking_words == 0 && hdr.tcp.isValid() && lacking_for_tcp == 0) {
                recognise();
            } else if (hdr.int_md.isValid() && lacking_words == 0 && hdr.udp.isValid() && lacking_in_udp == 0
                       && lacking_for_udp == 0) {
                recognise();
            } else {
                clear_announcement();
            }
        }
    }
}
