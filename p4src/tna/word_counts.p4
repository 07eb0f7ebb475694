// What an INT header asks a hop for, in words and bytes: the chip neither adds up eight bits in a step nor moves five of
// them to where they can be added, so tables of constants know the results.

#define CONTENT_ROW(a, b, c, d, e, f, g, h) \
    (a, b, c, d, e, f, g, h): set_content_words(a + b + c + d + 2 * e + 2 * f + 2 * g + h);
#define CONTENT_2(a, b, c, d, e, f, g) CONTENT_ROW(a, b, c, d, e, f, g, 0) CONTENT_ROW(a, b, c, d, e, f, g, 1)
#define CONTENT_4(a, b, c, d, e, f) CONTENT_2(a, b, c, d, e, f, 0) CONTENT_2(a, b, c, d, e, f, 1)
#define CONTENT_8(a, b, c, d, e) CONTENT_4(a, b, c, d, e, 0) CONTENT_4(a, b, c, d, e, 1)
#define CONTENT_16(a, b, c, d) CONTENT_8(a, b, c, d, 0) CONTENT_8(a, b, c, d, 1)
#define CONTENT_32(a, b, c) CONTENT_16(a, b, c, 0) CONTENT_16(a, b, c, 1)
#define CONTENT_64(a, b) CONTENT_32(a, b, 0) CONTENT_32(a, b, 1)
#define CONTENT_128(a) CONTENT_64(a, 0) CONTENT_64(a, 1)

#define MORE_ROW(number, ones) number: set_more_words(ones);
#define MORE_2(number, ones) MORE_ROW(2 * (number), ones) MORE_ROW(2 * (number) + 1, ones + 1)
#define MORE_4(number, ones) MORE_2(2 * (number), ones) MORE_2(2 * (number) + 1, ones + 1)
#define MORE_8(number, ones) MORE_4(2 * (number), ones) MORE_4(2 * (number) + 1, ones + 1)
#define MORE_16(number, ones) MORE_8(2 * (number), ones) MORE_8(2 * (number) + 1, ones + 1)
#define MORE_32(number, ones) MORE_16(2 * (number), ones) MORE_16(2 * (number) + 1, ones + 1)
#define MORE_64(number, ones) MORE_32(2 * (number), ones) MORE_32(2 * (number) + 1, ones + 1)
#define MORE_128(number, ones) MORE_64(2 * (number), ones) MORE_64(2 * (number) + 1, ones + 1)

#define HOP_ROW(words) words: set_hop_words(words, 4 * (words), 4 * (words));
#define HOP_4(words) HOP_ROW(words) HOP_ROW(words + 1) HOP_ROW(words + 2) HOP_ROW(words + 3)

control WordCounts(in egress_headers_t hdr, out bit<8> content_words, out bit<8> more_words, out bit<8> hop_words,
                   out bit<16> hop_bytes, out bit<32> hop_sent_bytes) {

    // Hop ML.
    action set_hop_words(bit<8> words, bit<16> bytes, bit<32> sent_bytes) {
        hop_words = words;
        hop_bytes = bytes;
        hop_sent_bytes = sent_bytes;
    }

    table int_hop_words {
        key = { hdr.int_md.hop_words: exact; }
        actions = { set_hop_words; }
        const default_action = set_hop_words(0, 0, 0);
        size = 32;
        const entries = {
            HOP_4(0)
            HOP_4(4)
            HOP_4(8)
            HOP_4(12)
            HOP_4(16)
            HOP_4(20)
            HOP_4(24)
            HOP_4(28)
        }
    }

    // Bits 0..7: one word each, two for the times and for the level-2 ports.
    action set_content_words(bit<8> words) {
        content_words = words;
    }

    table int_content_words {
        key = {
            hdr.int_md.wants_node_id: exact;
            hdr.int_md.wants_level1_ports: exact;
            hdr.int_md.wants_hop_latency: exact;
            hdr.int_md.wants_queue: exact;
            hdr.int_md.wants_ingress_time: exact;
            hdr.int_md.wants_egress_time: exact;
            hdr.int_md.wants_level2_ports: exact;
            hdr.int_md.wants_utilisation: exact;
        }
        actions = { set_content_words; }
        const default_action = set_content_words(0);
        size = 256;
        const entries = {
            CONTENT_128(0)
            CONTENT_128(1)
        }
    }

    // Bits 8..15: one word each.
    action set_more_words(bit<8> words) {
        more_words = words;
    }

    table int_more_words {
        key = { hdr.int_md.wants_more: exact; }
        actions = { set_more_words; }
        const default_action = set_more_words(0);
        size = 256;
        const entries = {
            MORE_128(0, 0)
            MORE_128(1, 1)
        }
    }

    apply {
        int_hop_words.apply();
        int_content_words.apply();
        int_more_words.apply();
    }
}
