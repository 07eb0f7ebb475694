// Which packets are probes: DSCP bit 0 announces INT, and behind L4 a whole shim and INT-MD 2.1 header do follow.
//
// Ingress does not know how long the frame is: that IPv4's length fits into it, nothing checks here.

control ProbeRecognition(inout ingress_headers_t hdr, inout ingress_metadata_t meta,
                         in ingress_intrinsic_metadata_t intrinsic) {

    // Packets that announced INT and brought none, by ingress port; they are sent on as the data they are.
    @id(ID_COUNTER_NOT_INT)
    Counter<bit<64>, PortId_t>(PORTS, CounterType_t.PACKETS_AND_BYTES) not_int_counter;

    // What is missing somewhere is not 0: differences that saturate replace comparisons of two fields.
    bit<16> segment_bytes;                  // that IPv4's length leaves
    bit<16> udp_bytes;                      // that the INT stack asks for, in UDP
    bit<16> tcp_bytes;                      // and in TCP
    bit<16> lacking_in_udp;
    bit<16> lacking_for_udp;
    bit<16> lacking_for_tcp;

    action measure_probe() {
        segment_bytes = hdr.ipv4.total_length |-| 20;
        udp_bytes = meta.int_words << 2;
        tcp_bytes = meta.int_words << 2;
    }

    action add_headers() {
        udp_bytes = udp_bytes + 12;         // UDP's header and the shim
        tcp_bytes = tcp_bytes + 24;         // TCP's and the shim
    }

    action compare_lengths() {
        lacking_in_udp = udp_bytes |-| hdr.udp.length;
        lacking_for_udp = hdr.udp.length |-| segment_bytes;
        lacking_for_tcp = tcp_bytes |-| segment_bytes;
    }

    action clear_announcement() {
        hdr.ipv4.dscp[0:0] = 0;
    }

    action count_not_int() {
        not_int_counter.count(intrinsic.ingress_port, FCS_BYTES);
    }

    action recognise() {
        meta.is_probe = 1;
        hdr.bridged.is_probe = 1;
    }

    apply {
        if (hdr.ipv4.dscp & ~DSCP_WITHOUT_INT != 0) {
            measure_probe();
            add_headers();
            compare_lengths();
            if (hdr.int_md.isValid() && hdr.int_shim.length >= INT_HEADER_WORDS && hdr.tcp.isValid() && lacking_for_tcp == 0) {
                recognise();
            } else if (hdr.int_md.isValid() && hdr.int_shim.length >= INT_HEADER_WORDS && hdr.udp.isValid() && lacking_in_udp == 0
                       && lacking_for_udp == 0) {
                recognise();
            } else {
                clear_announcement();
                count_not_int();
            }
        }
    }
}
