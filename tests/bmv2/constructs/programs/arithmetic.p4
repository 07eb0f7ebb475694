// Fields of more than 64 bits, signed ones, and what can be computed with them.

#include <core.p4>
#include <v1model.p4>

header operands_t {
    bit<8> operation;
    bit<8> small;
    bit<100> wide;
    bit<4> nibble;
    bit<128> widest;
    int<16> signed;
    int<72> wide_signed;
    bit<64> word;
}

header results_t {
    bit<128> widest;
    bit<100> wide;
    bit<3> flags;
    bit<1> padding;
    bit<64> word;
    bit<16> half;
    int<8> signed;
    int<72> wide_signed;
}

struct headers_t {
    operands_t operands;
    results_t results;
}

struct metadata_t {
    bit<200> scratch;
    int<16> signed;
}

parser read(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.operands);
        meta.scratch = packet.lookahead<bit<200>>();
        transition select(hdr.operands.widest, hdr.operands.signed) {
            (0x1_0000_0000_0000_0000_0000, _): big;
            (0xff00_0000_0000_0000_0000_0000_0000_0000 &&& 0xff00_0000_0000_0000_0000_0000_0000_0001, _): big;
            (_, 5): negative;
            default: accept;
        }
    }

    state big {
        meta.scratch = meta.scratch + 1;
        transition accept;
    }

    state negative {
        meta.scratch = ~meta.scratch;
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<100>>(4) cells;

    action add() {
        hdr.results.widest = hdr.operands.widest + meta.scratch[127:0];
        hdr.results.wide = hdr.operands.wide + 1;
        hdr.results.word = hdr.operands.word + hdr.operands.widest[63:0];
        hdr.results.signed = (int<8>)hdr.operands.signed + 100;
        hdr.results.wide_signed = hdr.operands.wide_signed + (int<72>)hdr.operands.signed;
    }

    action subtract() {
        hdr.results.widest = hdr.operands.widest - meta.scratch[127:0];
        hdr.results.wide = hdr.operands.wide - (bit<100>)hdr.operands.small;
        hdr.results.word = hdr.operands.word - 1;
        hdr.results.signed = -(int<8>)hdr.operands.signed;
        hdr.results.wide_signed = (int<72>)hdr.operands.signed - hdr.operands.wide_signed;
    }

    action multiply() {
        hdr.results.widest = hdr.operands.widest * meta.scratch[127:0];
        hdr.results.wide = hdr.operands.wide * 0x1_2345_6789_abcd_ef01_2345;
        hdr.results.word = hdr.operands.word * hdr.operands.word;
        hdr.results.signed = (int<8>)hdr.operands.signed * 3;
        hdr.results.wide_signed = hdr.operands.wide_signed * (int<72>)hdr.operands.signed;
    }

    action saturate_up() {
        hdr.results.widest = hdr.operands.widest |+| meta.scratch[127:0];
        hdr.results.wide = hdr.operands.wide |+| 0xfff_ffff_0000_0000_0000_0000;
        hdr.results.word = hdr.operands.word |+| hdr.operands.widest[63:0];
        hdr.results.half = (bit<16>)hdr.operands.small |+| 0xff80;
        hdr.results.signed = (int<8>)hdr.operands.signed |+| 60;
        hdr.results.wide_signed = hdr.operands.wide_signed |+| 0x7f_ff00_0000_0000_0000;
    }

    action saturate_down() {
        hdr.results.widest = hdr.operands.widest |-| meta.scratch[127:0];
        hdr.results.wide = hdr.operands.wide |-| 0xff_ffff_0000_0000_0000_0000;
        hdr.results.word = hdr.operands.word |-| hdr.operands.widest[63:0];
        hdr.results.half = (bit<16>)hdr.operands.small |-| 0x80;
        hdr.results.signed = (int<8>)hdr.operands.signed |-| 60;
        hdr.results.wide_signed = hdr.operands.wide_signed |-| 0x7f_ff00_0000_0000_0000;
    }

    action shift() {
        hdr.results.widest = hdr.operands.widest << hdr.operands.small;
        hdr.results.wide = hdr.operands.wide >> hdr.operands.small;
        hdr.results.word = hdr.operands.word >> hdr.operands.small;
        hdr.results.half = (bit<16>)hdr.operands.wide << (bit<4>)hdr.operands.small;
        hdr.results.signed = (int<8>)hdr.operands.signed >> (bit<3>)hdr.operands.small;
        hdr.results.wide_signed = hdr.operands.wide_signed >> hdr.operands.small;
    }

    action bits() {
        hdr.results.widest = (hdr.operands.widest & meta.scratch[127:0]) ^ (hdr.operands.widest | meta.scratch[199:72]);
        hdr.results.wide = ~hdr.operands.wide;
        hdr.results.wide[77:60] = hdr.operands.widest[90:73];
        hdr.results.word = hdr.operands.wide[97:34];
        hdr.results.half = hdr.operands.nibble ++ hdr.operands.wide[70:63] ++ hdr.operands.nibble;
        hdr.results.signed = ~(int<8>)hdr.operands.signed;
        hdr.results.wide_signed = hdr.operands.wide_signed ^ (int<72>)hdr.operands.signed;
    }

    action cast() {
        hdr.results.widest = (bit<128>)(bit<72>)hdr.operands.wide_signed;
        hdr.results.wide = (bit<100>)hdr.operands.widest;
        hdr.results.word = (bit<64>)(bit<16>)hdr.operands.signed;
        hdr.results.half = (bit<16>)(bit<72>)hdr.operands.wide_signed;
        meta.signed = (int<16>)(bit<16>)hdr.operands.wide;
        hdr.results.signed = (int<8>)meta.signed;
        hdr.results.wide_signed = (int<72>)meta.signed;
    }

    action choose() {
        hdr.results.widest = hdr.operands.widest > meta.scratch[127:0] ? hdr.operands.widest : meta.scratch[127:0];
        hdr.results.wide_signed = hdr.operands.wide_signed < (int<72>)hdr.operands.signed
            ? hdr.operands.wide_signed : (int<72>)hdr.operands.signed;
        hdr.results.signed = (int<8>)hdr.operands.signed < -5 ? 8s1 : -8s1;
    }

    action remember() {
        bit<100> before;
        cells.read(before, (bit<32>)hdr.operands.nibble);
        hdr.results.wide = before;
        cells.write((bit<32>)hdr.operands.nibble, hdr.operands.wide);
        hash(hdr.results.widest, HashAlgorithm.crc32, 16w7, { hdr.operands.wide, hdr.operands.nibble }, 32w0xffff_ff00);
        hash(hdr.results.word, HashAlgorithm.identity, 64w0, { hdr.operands.widest }, 64w0xffff_ffff_ffff_ffff);
    }

    action digest_crc16() {
        hash(hdr.results.half, HashAlgorithm.crc16, 16w0, { hdr.operands.widest, hdr.operands.nibble }, 32w0x10000);
        hash(hdr.results.word, HashAlgorithm.xor16, 16w0, { hdr.operands.wide, hdr.operands.nibble }, 32w0x10000);
        hash(hdr.results.widest, HashAlgorithm.csum16, 16w0, { hdr.operands.wide, hdr.operands.nibble }, 32w0x10000);
    }

    action digest_custom() {
        hash(hdr.results.half, HashAlgorithm.crc16_custom, 16w1, { hdr.operands.wide, hdr.operands.small }, 32w1000);
        hash(hdr.results.word, HashAlgorithm.crc32_custom, 32w0, { hdr.operands.wide, 4w5 }, 64w0x1_0000_0000);
        hash(hdr.results.widest, HashAlgorithm.identity, 16w0, { hdr.operands.nibble, 3w5, hdr.operands.small[6:0] },
             64w0x10_0000_0000);
    }

    table operation {
        key = { hdr.operands.operation: exact; }
        actions = {
            add; subtract; multiply; saturate_up; saturate_down; shift; bits; cast; choose; remember; digest_crc16;
            digest_custom; NoAction;
        }
        default_action = NoAction;
        const entries = {
            1: add();
            2: subtract();
            3: multiply();
            4: saturate_up();
            5: saturate_down();
            6: shift();
            7: bits();
            8: cast();
            9: choose();
            10: remember();
            11: digest_crc16();
            12: digest_custom();
        }
    }

    apply {
        standard.egress_spec = 2;
        if (!hdr.operands.isValid()) {
            exit;
        }
        hdr.results.setValid();
        operation.apply();
        if (hdr.operands.widest == meta.scratch[127:0]) {
            hdr.results.flags = hdr.results.flags | 1;
        }
        if (hdr.operands.wide_signed >= -1 && hdr.operands.wide <= meta.scratch[199:100]) {
            hdr.results.flags = hdr.results.flags | 2;
        }
        if (hdr.operands.signed < (int<16>)hdr.operands.wide_signed || hdr.operands.word != meta.scratch[150:87]) {
            hdr.results.flags = hdr.results.flags | 4;
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.results.isValid() && hdr.operands.operation >= 0x80,
            { hdr.operands.wide, hdr.operands.nibble, hdr.results.widest, hdr.operands.wide_signed },
            hdr.results.half, HashAlgorithm.csum16);
    }
}

control write(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(read(), verify_checksums(), ingress(), egress(), update(), write()) main;
