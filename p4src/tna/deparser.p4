// Headers to bytes, and the checksums of what has changed: the sum of the rest, which the parsers have kept, and the new
// fields. An error that an L4 checksum arrived with stays one (RFC 1624).

control IngressDeparser(packet_out packet, inout ingress_headers_t hdr, in ingress_metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {

    Checksum() ipv4_checksum;

    apply {
        hdr.ipv4.checksum = ipv4_checksum.update({ IPV4_VERSION_TO_ECN, hdr.ipv4.time_to_live, hdr.ipv4.protocol,
                                                   meta.ipv4_residual });
        packet.emit(hdr.bridged);
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.options_8);
        packet.emit(hdr.options_4);
        packet.emit(hdr.options_2);
        packet.emit(hdr.options_1);
        packet.emit(hdr.ports);
        packet.emit(hdr.udp);
        packet.emit(hdr.tcp);
        packet.emit(hdr.int_shim);
        packet.emit(hdr.int_md);
    }
}

#define ADDED_WORDS meta.added.node_id, meta.added.level1_ports, meta.added.hop_latency_ns, meta.added.queue, \
    meta.added.ingress_time_ns, meta.added.egress_time_ns, meta.added.window_bytes

// A probe's new metadata stands on top of its stack, right behind the INT-MD header.
control EgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                       in egress_intrinsic_metadata_for_deparser_t for_deparser) {

    Checksum() ipv4_checksum;
    Checksum() tcp_checksum;
    Checksum() udp_checksum;

    apply {
        hdr.ipv4.checksum = ipv4_checksum.update({ IPV4_VERSION_TO_ECN, hdr.ipv4.total_length, meta.ipv4_residual });
        // Without words from this hop the fields are as they were, or a bit of INT-MD is set.
        hdr.tcp.checksum = tcp_checksum.update({ hdr.ipv4.total_length, INT_SHIM_UNTIL_LENGTH, INT_MD_UNTIL_HOP_COUNT,
                                                 ADDED_WORDS, meta.l4_residual });
        // In UDP, 0 means that there is no checksum; its other representation is all ones.
        if (meta.has_udp_checksum == 1) {
            hdr.udp.checksum = udp_checksum.update({ hdr.ipv4.total_length, hdr.udp.length, INT_SHIM_UNTIL_LENGTH,
                                                     INT_MD_UNTIL_HOP_COUNT, ADDED_WORDS, meta.l4_residual }, true);
        }
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
        packet.emit(hdr.udp);
        packet.emit(hdr.tcp);
        packet.emit(hdr.int_shim);
        packet.emit(hdr.int_md);
        packet.emit(hdr.int_node_id);
        packet.emit(hdr.int_level1_ports);
        packet.emit(hdr.int_hop_latency);
        packet.emit(hdr.int_queue);
        packet.emit(hdr.int_ingress_time);
        packet.emit(hdr.int_egress_time);
        packet.emit(hdr.int_level2_ports);
        packet.emit(hdr.int_utilisation);
        packet.emit(hdr.int_filler_16);
        packet.emit(hdr.int_filler_8);
        packet.emit(hdr.int_filler_4);
        packet.emit(hdr.int_filler_2);
        packet.emit(hdr.int_filler_1);
    }
}
