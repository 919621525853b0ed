// SPDX-License-Identifier: GPL-2.0-only
/*
 * malloc.c - malloc-bench, what programs do with an allocator, whichever it is
 *
 * What: three loads. `own`: each thread allocates and frees what only it uses.
 *       `handover`: each thread frees what another one has allocated. `threads`: those who
 *       allocate come and go. The allocator is the C library's, or the one
 *       that LD_PRELOAD brings; --allocator says which one it has to be, since
 *       a library that is not there is only a warning of the linker.
 * Who:  people, and the suite `sharers` of `ceasefire bench run`.
 *
 * A block is stamped all over when it is allocated, with words that no other block
 * has, and compared when it is freed: a CPU that still has a page from
 * before reads or writes something else.
 */
#include "team.h"

#include "../common/util.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 512U		/* blocks that a member has at a time */
#define TURNS 2000U		/* blocks of a member in a round */
#define RING 256U		/* blocks on their way to another member */
#define COMING 4U		/* threads that come and go in a round, of each member */
#define EMPTY_EVERY 4U		/* rounds after which a member frees all it has */
#define STAMP_EVERY 512U	/* bytes */

struct held {
	char *memory;
	size_t size;
	uint64_t stamp;
};

/* From one member to the next; each index is written by one of them. */
struct ring {
	_Alignas(128) atomic_uint in;
	_Alignas(128) atomic_uint out;
	struct held held[RING];
};

struct member {
	_Alignas(128) uint64_t random;
	struct held slots[SLOTS];
};

struct load {
	const char *name;
	const char *operation;
	void (*round)(unsigned int member, unsigned int round);
};

static struct team_options team;
static const struct load *load;
static const char *wanted_allocator;
static char allocator[200];
static struct member *members;
static struct ring *rings;
static atomic_bool spoil_one;

static uint64_t next_random(struct member *m)
{
	m->random += 0x9e3779b97f4a7c15ULL;
	return mix(m->random);
}

/* Most blocks are small, and most memory is in large ones. */
static size_t size_of(uint64_t random)
{
	static const struct { unsigned int percent; size_t most; } kinds[] = {
		{ 70, 512 }, { 25, 16 << 10 }, { 4, 128 << 10 }, { 1, 1 << 20 },
	};
	unsigned int percent = (unsigned int)(random % 100), kind = 0;

	while (percent >= kinds[kind].percent)
		percent -= kinds[kind++].percent;
	return 16 + (random >> 16) % kinds[kind].most / 8 * 8;
}

/* Of the stamps of a block: one each so many bytes, the last one is its last word or near. */
static uint64_t *word_at(const struct held *h, size_t i)
{
	size_t at = i * STAMP_EVERY, last = h->size - sizeof(uint64_t);

	return (uint64_t *)(void *)(h->memory + (at < last ? at : last));
}

static size_t words_of(const struct held *h)
{
	return h->size / STAMP_EVERY + 1;
}

static uint64_t stamp_at(const struct held *h, size_t i)
{
	return mix(h->stamp + (uint64_t)((char *)word_at(h, i) - h->memory));
}

static struct held take(struct member *m)
{
	uint64_t random = next_random(m);
	struct held h = { .size = size_of(random), .stamp = random };

	h.memory = malloc(h.size);
	if (!h.memory)
		die(EXIT_FAILED, "malloc of %zu bytes failed", h.size);
	for (size_t i = 0; i < words_of(&h); i++)
		*word_at(&h, i) = stamp_at(&h, i);
	return h;
}

static void give(struct held *h)
{
	uint64_t wrong = 0;

	if (!h->memory)
		return;
	if (atomic_load_explicit(&spoil_one, memory_order_relaxed) &&
	    atomic_exchange(&spoil_one, false))
		*word_at(h, 0) ^= 1;
	for (size_t i = 0; i < words_of(h); i++)
		wrong += *word_at(h, i) != stamp_at(h, i);
	if (wrong)
		team_wrong(wrong);
	free(h->memory);
	h->memory = NULL;
}

static void round_own(unsigned int member, unsigned int round)
{
	struct member *m = &members[member];

	for (unsigned int i = 0; i < TURNS; i++) {
		struct held *slot = &m->slots[next_random(m) % SLOTS];

		give(slot);
		*slot = take(m);
	}
	for (unsigned int i = 0; round % EMPTY_EVERY == EMPTY_EVERY - 1 && i < SLOTS; i++)
		give(&m->slots[i]);
	team_did(TURNS, TURNS);
}

static bool put(struct ring *ring, struct member *m)
{
	unsigned int in = atomic_load_explicit(&ring->in, memory_order_relaxed);

	if (in - atomic_load_explicit(&ring->out, memory_order_acquire) == RING)
		return false;
	ring->held[in % RING] = take(m);
	atomic_store_explicit(&ring->in, in + 1, memory_order_release);
	return true;
}

static bool get(struct ring *ring)
{
	unsigned int out = atomic_load_explicit(&ring->out, memory_order_relaxed);

	if (out == atomic_load_explicit(&ring->in, memory_order_acquire))
		return false;
	give(&ring->held[out % RING]);
	atomic_store_explicit(&ring->out, out + 1, memory_order_release);
	return true;
}

static void round_handover(unsigned int member, unsigned int round)
{
	struct ring *to = &rings[member], *from = &rings[(member + 1) % team.threads];
	unsigned int sent = 0, got = 0;

	(void)round;
	while (sent < TURNS || got < TURNS) {
		bool moved = sent < TURNS && put(to, &members[member]);

		sent += moved;
		if (got < TURNS && get(from))
			got++;
		else if (!moved)
			sched_yield();
	}
	team_did(TURNS, TURNS);
}

/* What a thread does that has come for this. */
static void *come(void *argument)
{
	struct member *m = argument;
	struct held own[SLOTS / 8] = { 0 };

	for (unsigned int i = 0; i < SLOTS / 8; i++)
		own[i] = take(m);
	for (unsigned int i = 0; i < SLOTS / 8; i++)
		give(&own[i]);
	return NULL;
}

static void round_threads(unsigned int member, unsigned int round)
{
	(void)round;
	for (unsigned int i = 0; i < COMING; i++) {
		pthread_t thread;
		int error = pthread_create(&thread, NULL, come, &members[member]);

		if (error)
			die(EXIT_FAILED, "cannot start a thread: %s", strerror(error));
		pthread_join(thread, NULL);
	}
	team_did(COMING, COMING);
}

static const struct load loads[] = {
	{ "own", "blocks", round_own },
	{ "handover", "blocks", round_handover },
	{ "threads", "threads", round_threads },
};

static void read_load(void *to, char *name)
{
	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++) {
		if (!strcmp(name, loads[i].name)) {
			*(const struct load **)to = &loads[i];
			return;
		}
	}
	die(EXIT_USAGE, "--load is own, handover or threads, not '%s'", name);
}

/* Where malloc() really is. */
static void find_allocator(void)
{
	void *function = dlsym(RTLD_DEFAULT, "malloc");
	const char *name = "unknown", *slash;
	Dl_info info;

	if (function && dladdr(function, &info) && info.dli_fname)
		name = info.dli_fname;
	slash = strrchr(name, '/');
	snprintf(allocator, sizeof(allocator), "%s", slash ? slash + 1 : name);
	if (wanted_allocator && !strstr(allocator, wanted_allocator))
		die(EXIT_FAILED, "the allocator is %s, not %s: check LD_PRELOAD", allocator,
		    wanted_allocator);
}

static void look_at_nothing(unsigned int member, unsigned int round)
{
	(void)member;
	(void)round;
}

static void describe(struct json *json)
{
	json_string(json, "load", load->name);
	json_string(json, "allocator", allocator);
}

static void *zeroed(size_t count, size_t size)
{
	void *memory = aligned_alloc(128, count * size);

	if (!memory)
		die(EXIT_FAILED, "malloc of %zu bytes failed", count * size);
	return memset(memory, 0, count * size);
}

int main(int argc, char **argv)
{
	static const struct program program = {
		"malloc-bench [options]",
		"Threads allocate, check and free memory, with any allocator.", NULL
	};
	const struct program_option list[] = {
		CALL("load", "LOAD", &load, read_load,
		     "own: each thread frees its own; handover: another one's;\n"
		     "threads: those who allocate come and go (own)"),
		TEXT("allocator", "NAME", &wanted_allocator,
		     "fail if malloc() is in no library of such a name"),
		TEAM_OPTIONS(&team),
		{ 0 }
	};
	struct work work = { .type = "malloc", .item = "operations",
			     .check = look_at_nothing, .describe = describe };
	int status;

	set_program_name("malloc-bench");
	load = &loads[0];
	team_defaults(&team);
	parse_options(&program, list, argc, argv);
	find_allocator();
	members = zeroed(team.threads, sizeof(*members));
	rings = zeroed(team.threads, sizeof(*rings));
	for (unsigned int i = 0; i < team.threads; i++)
		members[i].random = mix(i + 1);
	atomic_store(&spoil_one, team.spoil);
	team_place(&team);
	work.round = load->round;
	work.operation = load->operation;
	status = team_run(&team, &work);
	free(members);
	free(rings);
	return status;
}
