// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// A plugin of QEMU's translator: counts the guest's instructions between the marks that smcbench puts
// around what it times (tools/smcbench/marks.hpp), by address and by who called whom.
//
//   qemu-system-x86_64 ... -plugin PATH/profile.so,out=FILE
//
// FILE, written at the end; all numbers hexadecimal:
//   marks N                     repetitions
//   block ADDRESS COUNT         instructions of a block of code
//   call ID PARENT ADDRESS COUNT    a function as called by PARENT (0: nobody), and its own instructions
//
// Calls are followed by their return addresses. What the handler of an interrupt calls is counted below
// the function that was interrupted, what another task does while this one sleeps below the function that
// sleeps.
//
// Owns: one entry per translated block, for as long as QEMU runs, and one per path of calls.
// Contexts: one emulated processor, hence one thread.
// Failure: a block that a fault leaves early counts as run to its end, which is a few instructions.
//   Out of memory ends QEMU.
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What is used of QEMU's interface, version 1, for which its package installs no header.
#define EXPORT __attribute__((visibility("default")))
#define PLUGIN_VERSION 1

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { CB_NO_REGS = 0 };
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
                                           void (*done)(plugin_id, struct qemu_plugin_tb*));
void qemu_plugin_register_atexit_cb(plugin_id id, void (*done)(plugin_id, void*), void* data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* tb);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn* insn);
const void* qemu_plugin_insn_data(const struct qemu_plugin_insn* insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn* insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* insn,
                                            void (*run)(unsigned int, void*), int flags,
                                            void* data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb* tb,
                                          void (*run)(unsigned int, void*), int flags, void* data);

EXPORT int qemu_plugin_version = PLUGIN_VERSION;
EXPORT int qemu_plugin_install(plugin_id id, const void* info, int argc, char** argv);

// nopl DISPLACEMENT(%rax): the displacement says which mark.
static const uint8_t kMarkCode[] = {0x0f, 0x1f, 0x80};
#define MARK_BYTES 7U
#define MARK_BEGIN 0x534d4301U
#define MARK_END 0x534d4302U

#define KERNEL_HALF (1ULL << 63)
#define DEPTH_MAX 256U
// A return to a frame this far below the top leaves those above it.
#define RETURN_SEARCH 64U

struct block {
    struct block* next;
    uint64_t address;
    uint64_t after; // the address behind its last instruction
    uint64_t instructions;
    uint64_t counted;
    bool calls; // at its end
};

struct call {
    struct call* sibling;
    struct call* children;
    uint64_t address;
    uint64_t counted;
};

struct frame {
    uint64_t resume; // where it returns to; 0: to the program
    struct call* call;
};

static struct block* blocks;
static struct call root;
static struct frame stack[DEPTH_MAX];
static unsigned int depth; // frames on the stack; stack[0] is the root's
static const struct block* last;
static bool counting;
static unsigned long marks;
static const char* out_path;

static void* allocate(size_t size)
{
    void* memory = calloc(1, size);
    if (memory == NULL)
        abort();
    return memory;
}

static struct call* callee(struct call* caller, uint64_t address)
{
    struct call* call = caller->children;
    while (call != NULL && call->address != address)
        call = call->sibling;
    if (call == NULL) {
        call = allocate(sizeof(*call));
        call->address = address;
        call->sibling = caller->children;
        caller->children = call;
    }
    return call;
}

static void push(uint64_t resume, uint64_t address)
{
    // Deeper than that: part of the caller.
    if (depth == DEPTH_MAX)
        return;
    stack[depth].call = callee(stack[depth - 1].call, address);
    stack[depth].resume = resume;
    depth++;
}

static void pop_return(uint64_t address)
{
    const unsigned int lowest = depth > RETURN_SEARCH ? depth - RETURN_SEARCH : 1;
    for (unsigned int i = depth - 1; i >= lowest; i--) {
        if (stack[i].resume == address) {
            depth = i;
            return;
        }
    }
}

static void ran(unsigned int cpu, void* data)
{
    struct block* block = data;
    (void)cpu;
    if (!counting)
        return;
    const bool kernel = (block->address & KERNEL_HALF) != 0;
    const bool was_kernel = (last->address & KERNEL_HALF) != 0;
    if (!kernel)
        depth = 1;
    else if (last->calls)
        push(last->after, block->address);
    else if (!was_kernel)
        push(0, block->address); // a system call, a fault, an interrupt
    else
        pop_return(block->address);
    block->counted += block->instructions;
    stack[depth - 1].call->counted += block->instructions;
    last = block;
}

static void begin(unsigned int cpu, void* data)
{
    (void)cpu;
    last = data;
    depth = 1;
    stack[0].call = &root;
    counting = true;
    marks++;
}

static void end(unsigned int cpu, void* data)
{
    (void)cpu;
    (void)data;
    counting = false;
}

// Whether it is E8 or FF /2, with prefixes.
static bool is_call(const struct qemu_plugin_insn* insn)
{
    const uint8_t* code = qemu_plugin_insn_data(insn);
    size_t size = qemu_plugin_insn_size(insn);
    while (size > 1 && ((code[0] & 0xf0) == 0x40 || code[0] == 0x2e || code[0] == 0x3e)) {
        code++;
        size--;
    }
    return code[0] == 0xe8 || (size > 1 && code[0] == 0xff && (code[1] & 0x38) == 0x10);
}

static uint32_t mark_of(const struct qemu_plugin_insn* insn)
{
    uint32_t mark = 0;
    if (qemu_plugin_insn_size(insn) != MARK_BYTES)
        return 0;
    const uint8_t* code = qemu_plugin_insn_data(insn);
    if (memcmp(code, kMarkCode, sizeof(kMarkCode)) == 0)
        memcpy(&mark, code + sizeof(kMarkCode), sizeof(mark));
    return mark;
}

static void translated(plugin_id id, struct qemu_plugin_tb* tb)
{
    (void)id;
    struct block* block = allocate(sizeof(*block));
    block->next = blocks;
    blocks = block;
    block->instructions = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < block->instructions; i++) {
        struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
        if (i == 0)
            block->address = qemu_plugin_insn_vaddr(insn);
        if (i + 1 == block->instructions) {
            block->after = qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn);
            block->calls = is_call(insn);
        }
        const uint32_t mark = mark_of(insn);
        if (mark == MARK_BEGIN)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, CB_NO_REGS, block);
        else if (mark == MARK_END)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, end, CB_NO_REGS, NULL);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, ran, CB_NO_REGS, block);
}

// Numbers the calls depth first and prints each below its parent.
static void print_calls(FILE* out, const struct call* parent, unsigned long parent_id,
                        unsigned long* ids)
{
    for (const struct call* call = parent->children; call != NULL; call = call->sibling) {
        const unsigned long own = ++*ids;
        fprintf(out, "call %lx %lx %" PRIx64 " %" PRIx64 "\n", own, parent_id, call->address,
                call->counted);
        print_calls(out, call, own, ids);
    }
}

static void finish(plugin_id id, void* data)
{
    unsigned long ids = 0;
    (void)id;
    (void)data;
    FILE* out = fopen(out_path, "w");
    if (out == NULL) {
        perror(out_path);
        return;
    }
    fprintf(out, "marks %lx\n", marks);
    for (const struct block* block = blocks; block != NULL; block = block->next) {
        if (block->counted != 0)
            fprintf(out, "block %" PRIx64 " %" PRIx64 "\n", block->address, block->counted);
    }
    print_calls(out, &root, 0, &ids);
    fclose(out);
}

int qemu_plugin_install(plugin_id id, const void* info, int argc, char** argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0)
            out_path = strdup(argv[i] + 4);
    }
    if (out_path == NULL) {
        fprintf(stderr, "profile: out=FILE is missing\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finish, NULL);
    return 0;
}
