// The IPv4 checksum, verified and computed anew. Without options the shorter list; with them, those that are there.

#define IPV4_FIELDS hdr.ipv4.version, hdr.ipv4.header_length, hdr.ipv4.dscp, hdr.ipv4.ecn, \
    hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, \
    hdr.ipv4.time_to_live, hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination

// Fields of invalid headers count as absent.
#define OPTIONS_FIELDS hdr.options_8.words_1, hdr.options_8.words_2, hdr.options_8.words_3, hdr.options_8.words_4, \
    hdr.options_4.words_1, hdr.options_4.words_2, hdr.options_2.words, hdr.options_1.word

control TrainyardVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.header_length == 5, { IPV4_FIELDS }, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.header_length > 5, { IPV4_FIELDS, OPTIONS_FIELDS },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control TrainyardComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.header_length == 5, { IPV4_FIELDS }, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.header_length > 5, { IPV4_FIELDS, OPTIONS_FIELDS },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}
