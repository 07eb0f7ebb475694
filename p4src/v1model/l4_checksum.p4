// The L4 checksum of a probe, brought up to date by what has changed (RFC 1624): an error that the probe arrived with
// stays one.

control L4Checksum(inout headers_t hdr, inout metadata_t meta) {

    bit<32> sum;

    action add_to_complement_of(bit<16> checksum) {
        sum = meta.checksum_delta + (bit<32>) ~checksum;
        sum = (sum >> 16) + (sum & 0xFFFF);
        sum = (sum >> 16) + (sum & 0xFFFF);
    }

    action update_tcp() {
        add_to_complement_of(hdr.tcp.checksum);
        hdr.tcp.checksum = ~sum[15:0];
    }

    action update_udp() {
        add_to_complement_of(hdr.udp.checksum);
        hdr.udp.checksum = ~sum[15:0];
    }

    // In UDP, 0 means that there is no checksum; its other representation is all ones.
    action replace_udp_zero() {
        hdr.udp.checksum = 0xFFFF;
    }

    apply {
        if (hdr.tcp.isValid()) {
            update_tcp();
        } else if (hdr.udp.checksum != 0) {
            update_udp();
            if (hdr.udp.checksum == 0) {
                replace_udp_zero();
            }
        }
    }
}
