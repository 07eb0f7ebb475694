// Bytes to headers and back, and the IPv4 checksum.

parser TrainyardParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    // Ports are read only where they stand right behind a plain header of an unfragmented packet.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.header_length, hdr.ipv4.flags[0:0], hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, 0, PROTOCOL_TCP): parse_ports;
            (5, 0, 0, PROTOCOL_UDP): parse_ports;
            default: accept;
        }
    }

    state parse_ports {
        packet.extract(hdr.ports);
        meta.source_port = hdr.ports.source;
        meta.destination_port = hdr.ports.destination;
        transition accept;
    }
}

#define IPV4_CHECKSUM_FIELDS { hdr.ipv4.version, hdr.ipv4.header_length, hdr.ipv4.dscp, hdr.ipv4.ecn, \
    hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, \
    hdr.ipv4.time_to_live, hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination }

control TrainyardVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.header_length == 5, IPV4_CHECKSUM_FIELDS, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}

control TrainyardComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.header_length == 5, IPV4_CHECKSUM_FIELDS, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}

control TrainyardDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}
