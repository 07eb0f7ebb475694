// Entries that the program brings, ranges, and keys of more than 64 bits; to a table a missing header is zeros. Of a
// switch over a value p4c makes a table whose key has no name.

#include <core.p4>
#include <v1model.p4>

header key_t {
    bit<8> kind;
    bit<16> port;
    bit<72> wide_range;
    bit<128> address;
    bit<100> label;
    bit<4> nibble;
    int<16> signed;
}

header found_t {
    bit<8> constant;
    bit<8> initial;
    bit<8> range_;
    bit<8> ternary_;
    bit<8> lpm_;
    bit<8> exact_;
    bit<8> switched;
    bit<100> argument;
    bit<4> padding;
}

struct headers_t {
    key_t key;
    found_t found;
}

struct metadata_t { }

parser read(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.key);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set_constant(bit<8> number) {
        hdr.found.constant = number;
    }

    action set_initial(bit<8> number) {
        hdr.found.initial = number;
    }

    action set_range(bit<8> number) {
        hdr.found.range_ = number;
    }

    action set_ternary(bit<8> number, bit<100> argument, bit<8> more) {
        hdr.found.ternary_ = number ^ more;
        hdr.found.argument = argument;
    }

    action set_lpm(bit<100> argument, bit<8> number) {
        hdr.found.lpm_ = number;
        hdr.found.argument = hdr.found.argument + argument;
    }

    action set_exact(bit<8> number) {
        hdr.found.exact_ = number;
    }

    table constant {
        key = {
            hdr.key.port: range;
            hdr.key.address: ternary;
            hdr.key.nibble: optional;
            hdr.key.kind: exact;
        }
        actions = { set_constant; NoAction; }
        const default_action = NoAction;
        const entries = {
            (100..200, _, _, 1): set_constant(1);
            (150..300, 0x20_0000_0000_0000_0000 &&& 0xf0_0000_0000_0000_0000, _, 1): set_constant(2);
            (_, _, 3, 1): set_constant(3);
            (0..0xffff, 5, 2, 1): set_constant(4);
            (7, _, _, 2): set_constant(5);
        }
    }

    table initial {
        key = { hdr.key.address: lpm; hdr.key.kind: exact; }
        actions = { set_initial; NoAction; }
        default_action = NoAction;
        size = 8;
        entries = {
            (0x8000_0000_0000_0000_0000_0000_0000_0000, 1): set_initial(1);
            (5, 1): set_initial(2);
            (_, 1): set_initial(3);
        }
    }

    table range_ {
        key = { hdr.key.port: range; hdr.key.wide_range: range; hdr.key.kind: ternary; }
        actions = { set_range; NoAction; }
        default_action = NoAction;
    }

    table ternary_ {
        key = { hdr.key.address: ternary; hdr.key.label: ternary; hdr.key.port: optional; }
        actions = { set_ternary; NoAction; }
        default_action = NoAction;
    }

    table lpm_ {
        key = { hdr.key.address: lpm; hdr.key.nibble: exact; }
        actions = { set_lpm; NoAction; }
        default_action = NoAction;
    }

    table exact_ {
        key = { hdr.key.label: exact; hdr.key.address: exact; hdr.key.nibble: exact; hdr.key.signed: exact; }
        actions = { set_exact; NoAction; }
        default_action = NoAction;
    }

    apply {
        standard.egress_spec = 2;
        hdr.found.setValid();
        constant.apply();
        initial.apply();
        range_.apply();
        ternary_.apply();
        lpm_.apply();
        exact_.apply();
        if (hdr.key.isValid()) {
            switch (hdr.key.kind) {
                1: { hdr.found.switched = 1; }
                2:
                3: { hdr.found.switched = 23; }
                default: { hdr.found.switched = 255; }
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control write(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(read(), verify_checksums(), ingress(), egress(), update(), write()) main;
