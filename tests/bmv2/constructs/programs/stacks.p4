// Header stacks, header unions and the errors of a parser.

#include <core.p4>
#include <v1model.p4>

error { Forbidden }

header first_t {
    bit<8> operation;
    bit<8> index;
}

header label_t {
    bit<20> label;
    bit<3> class;
    bit<1> bottom;
    bit<8> time_to_live;
}

header short_t {
    bit<8> kind;
    bit<8> value;
}

header long_t {
    bit<8> kind;
    bit<24> value;
}

header_union choice_t {
    short_t short;
    long_t long;
}

header report_t {
    bit<8> error_;
    bit<8> last_index;
    bit<8> looked_at;
    bit<8> flags;
}

struct headers_t {
    first_t first;
    report_t report;
    label_t[4] labels;
    label_t[4] copies;
    choice_t choice;
}

struct metadata_t {
    bit<8> last_index;
    bit<8> looked_at;
    label_t ahead;
}

parser read(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.first);
        verify(hdr.first.operation != 0xee, error.Forbidden);
        transition select(hdr.first.operation) {
            0xf0 &&& 0xf0: choice;
            0xe0: reject;
            0xe1: skip;
            0xe2: unmatched;
            0xe3: look;
            default: labels;
        }
    }

    state labels {
        packet.extract(hdr.labels.next);
        meta.last_index = (bit<8>)hdr.labels.lastIndex;
        transition select(hdr.labels.last.bottom, hdr.labels.last.label) {
            (0, 0xfffff): accept;
            (0, _): labels;
            default: choice;
        }
    }

    state skip {
        packet.advance((bit<32>)hdr.first.index);
        transition labels;
    }

    state unmatched {
        transition select(hdr.first.index) {
            1: labels;
            2: choice;
        }
    }

    state look {
        meta.ahead = packet.lookahead<label_t>();
        transition select(meta.ahead.bottom) {
            1: labels;
            default: choice;
        }
    }

    state choice {
        meta.looked_at = packet.lookahead<bit<8>>();
        transition select(meta.looked_at) {
            1: short;
            2: long;
            default: accept;
        }
    }

    state short {
        packet.extract(hdr.choice.short);
        transition accept;
    }

    state long {
        packet.extract(hdr.choice.long);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action push_one() {
        hdr.labels.push_front(1);
        hdr.labels[0].setValid();
        hdr.labels[0].label = 0xabcde;
    }

    action push_many() {
        hdr.labels.push_front(3);
    }

    action push_all() {
        hdr.labels.push_front(5);
        hdr.labels[1] = { 1, 2, 1, 4 };
    }

    action pop_one() {
        hdr.labels.pop_front(1);
    }

    action pop_many() {
        hdr.labels.pop_front(3);
    }

    action pop_all() {
        hdr.labels.pop_front(6);
    }

    action write_at() {
        hdr.labels[hdr.first.index].time_to_live = hdr.first.operation;
    }

    action read_at() {
        hdr.labels[0].setValid();
        hdr.labels[1].setValid();
        hdr.labels[2].setValid();
        hdr.labels[3].setValid();
        hdr.report.flags = hdr.labels[hdr.first.index].time_to_live;
    }

    action copy_at() {
        hdr.copies[0] = hdr.labels[hdr.first.index];
        hdr.labels[2].setInvalid();
    }

    action copy_all() {
        hdr.copies = hdr.labels;
        hdr.labels.pop_front(2);
    }

    action make_short() {
        hdr.choice.short.setValid();
        hdr.choice.short = { 7, 8 };
    }

    action make_long() {
        hdr.choice.long.setValid();
        hdr.choice.long.value = 0x123456;
    }

    action drop_choice() {
        hdr.choice.long.setInvalid();
    }

    table operation {
        key = { hdr.first.operation: ternary; }
        actions = {
            push_one; push_many; push_all; pop_one; pop_many; pop_all; write_at; read_at; copy_at; copy_all; make_short;
            make_long; drop_choice; NoAction;
        }
        default_action = NoAction;
        const entries = {
            1 &&& 0xf: push_one();
            2 &&& 0xf: push_many();
            3 &&& 0xf: push_all();
            4 &&& 0xf: pop_one();
            5 &&& 0xf: pop_many();
            6 &&& 0xf: pop_all();
            7 &&& 0xf: write_at();
            8 &&& 0xf: read_at();
            9 &&& 0xf: copy_at();
            10 &&& 0xf: copy_all();
            11 &&& 0xf: make_short();
            12 &&& 0xf: make_long();
            13 &&& 0xf: drop_choice();
        }
    }

    apply {
        standard.egress_spec = 2;
        hdr.report.setValid();
        hdr.report.last_index = meta.last_index;
        hdr.report.looked_at = meta.looked_at;
        if (standard.parser_error == error.StackOutOfBounds) {
            hdr.report.error_ = 1;
        } else if (standard.parser_error == error.PacketTooShort) {
            hdr.report.error_ = 2;
        } else if (standard.parser_error == error.Forbidden) {
            hdr.report.error_ = 3;
        } else if (standard.parser_error == error.NoMatch) {
            hdr.report.error_ = 4;
        } else if (standard.parser_error != error.NoError) {
            hdr.report.error_ = 5;
        }
        if (hdr.first.isValid() && hdr.first.index < 4) {
            switch (operation.apply().action_run) {
                push_one: { hdr.report.flags = hdr.report.flags | 0x80; }
                pop_one:
                pop_many: { hdr.report.flags = 0x40; exit; }
                default: { }
            }
            if (hdr.labels[0] == hdr.labels[1]) {
                hdr.report.flags = hdr.report.flags | 1;
            }
            if (hdr.choice.isValid()) {
                hdr.report.flags = hdr.report.flags | 2;
            }
            if (meta.ahead.isValid() && meta.ahead.time_to_live == hdr.first.index) {
                hdr.report.flags = hdr.report.flags | 4;
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        log_msg("flags {}", { hdr.report.flags });
        if (hdr.report.flags == 0x13) {
            exit;
        }
        hdr.report.flags = hdr.report.flags ^ 0x10;
    }
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
