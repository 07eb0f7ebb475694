// Headers to bytes: a probe's new metadata stands on top of its stack, right behind the INT-MD header.

control TrainyardDeparser(packet_out packet, in headers_t hdr) {
    apply {
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
