// SPDX-License-Identifier: GPL-2.0-only
/*
 * bfs.c - bfs-bench: breadth-first search over a Kronecker graph
 *
 * What: level by level; the threads take pieces of a level, and whoever comes to
 *       a vertex first is its parent. A round and an operation are a search, each from
 *       another root. The arrays of a search are mapped for it and unmapped
 *       after it. The tree is then looked at as Graph500 asks for, and that is
 *       not timed. The rate is of edges that were looked at.
 * Who:  people, and `ceasefire bench run bfs`.
 */
#include "graph.h"
#include "team.h"

#include "../common/util.h"

#include <stdatomic.h>

/* Vertices that a thread takes at a time, and that it has found before it says so. */
#define PIECE 64U

#define NO_LEVEL UINT32_MAX

struct options {
	struct team_options team;
	unsigned int scale;
	unsigned int edge_factor;
	uint64_t seed;
};

static struct options options;
static struct graph graph;

/* Of a search. A parent is a vertex and 1, 0: not found yet. */
static uint32_t root;
static _Atomic uint32_t *parents;
static uint32_t *level, *next_level;	/* vertices of it */
static uint32_t level_count;
static _Atomic uint32_t taken, next_count;
/* Of the check: how far each vertex is from the root, by the tree. */
static uint32_t *distance;

static void parse(int argc, char **argv)
{
	static const struct program program = {
		"bfs-bench [options]",
		"Threads search a Kronecker graph breadth first.", NULL
	};
	struct options *o = &options;
	const struct program_option list[] = {
		TEAM_OPTIONS(&o->team),
		NUMBER("scale", "N", &o->scale, 4, 26, "2^N vertices (12)"),
		NUMBER("edge-factor", "N", &o->edge_factor, 1, 64, "edges for each of them (16)"),
		NUMBER("seed", "N", &o->seed, 0, UINT64_MAX, "of the graph and the roots (1)"),
		{ 0 }
	};

	*o = (struct options){ .scale = 12, .edge_factor = 16, .seed = 1 };
	team_defaults(&o->team);
	parse_options(&program, list, argc, argv);
}

static size_t bytes_of_vertices(void)
{
	return graph.vertices * sizeof(uint32_t);
}

/* Some vertex with an edge; main() has seen that there is one. */
static uint32_t root_of(unsigned int round)
{
	uint32_t vertex = (uint32_t)(mix(options.seed + mix(round)) % graph.vertices);

	while (!graph_degree(&graph, vertex))
		vertex = (vertex + 1) % graph.vertices;
	return vertex;
}

static void begin_search(unsigned int round)
{
	root = root_of(round);
	parents = team_take(bytes_of_vertices());
	level = team_take(bytes_of_vertices());
	next_level = team_take(bytes_of_vertices());
	atomic_store(&parents[root], root + 1);
	level[0] = root;
	level_count = 1;
	atomic_store(&taken, 0);
	atomic_store(&next_count, 0);
}

static void end_level(void)
{
	uint32_t *old = level;

	level = next_level;
	next_level = old;
	level_count = atomic_exchange(&next_count, 0);
	atomic_store(&taken, 0);
}

struct found {
	uint32_t count;
	uint32_t vertices[PIECE];
};

static void tell(struct found *found)
{
	uint32_t at = atomic_fetch_add(&next_count, found->count);

	for (uint32_t i = 0; i < found->count; i++)
		next_level[at + i] = found->vertices[i];
	found->count = 0;
}

static void visit(uint32_t vertex, struct found *found)
{
	for (uint64_t i = graph.first[vertex]; i < graph.first[vertex + 1]; i++) {
		uint32_t next = graph.neighbours[i], none = 0;

		if (atomic_load_explicit(&parents[next], memory_order_relaxed) ||
		    !atomic_compare_exchange_strong(&parents[next], &none, vertex + 1))
			continue;
		found->vertices[found->count++] = next;
		if (found->count == PIECE)
			tell(found);
	}
}

static uint64_t search_level(void)
{
	struct found found = { 0 };
	uint64_t edges = 0;
	uint32_t at;

	while ((at = atomic_fetch_add(&taken, PIECE)) < level_count) {
		for (uint32_t i = at; i < level_count && i < at + PIECE; i++) {
			visit(level[i], &found);
			edges += graph_degree(&graph, level[i]);
		}
	}
	tell(&found);
	return edges;
}

static void run_round(unsigned int member, unsigned int round)
{
	uint64_t edges = 0;

	if (!member)
		begin_search(round);
	team_meet();
	while (level_count) {
		edges += search_level();
		team_meet();
		if (!member)
			end_level();
		team_meet();
	}
	team_did(!member, edges);
	if (!member) {
		team_give(level, bytes_of_vertices());
		team_give(next_level, bytes_of_vertices());
	}
}

/* By the tree; NO_LEVEL where it does not lead to the root. */
static uint32_t distance_of(uint32_t vertex)
{
	uint32_t steps = 0;

	while (vertex != root) {
		uint32_t parent = atomic_load_explicit(&parents[vertex], memory_order_relaxed);

		if (!parent || parent > graph.vertices || ++steps >= graph.vertices)
			return NO_LEVEL;
		vertex = parent - 1;
	}
	return steps;
}

/*
 * A vertex that was found has an edge from its parent, which is one level nearer to
 * the root. An edge joins vertices of the same or of neighbouring levels: else there
 * was a shorter way. And no edge leads from one that was found to one that was not.
 */
static bool vertex_is_right(uint32_t vertex)
{
	uint32_t parent = atomic_load_explicit(&parents[vertex], memory_order_relaxed);
	uint32_t own = distance[vertex];
	bool found = own != NO_LEVEL;

	if (found != (parent != 0))
		return false;
	if (parent && vertex == root && parent != root + 1)
		return false;
	if (parent && vertex != root && !graph_has_edge(&graph, vertex, parent - 1))
		return false;
	for (uint64_t i = graph.first[vertex]; i < graph.first[vertex + 1]; i++) {
		uint32_t other = distance[graph.neighbours[i]];

		/* NO_LEVEL is more than any level. */
		if (found ? other > own + 1 : other != NO_LEVEL)
			return false;
	}
	return true;
}

/* The last neighbour of the root is lost: one that another vertex may have found. */
static void spoil(void)
{
	uint32_t vertex = graph.neighbours[graph.first[root + 1] - 1];

	atomic_store(&parents[vertex], vertex + 1);
}

static void check_round(unsigned int member, unsigned int round)
{
	uint64_t first, end, wrong = 0;

	if (!member) {
		if (options.team.spoil && !round)
			spoil();
		distance = team_take(bytes_of_vertices());
	}
	team_meet();
	end = team_part(graph.vertices, member, options.team.threads, &first);
	for (uint64_t v = first; v < end; v++) {
		uint32_t vertex = (uint32_t)v;

		distance[v] = atomic_load(&parents[v]) ? distance_of(vertex) : NO_LEVEL;
	}
	team_meet();
	for (uint64_t v = first; v < end; v++)
		wrong += !vertex_is_right((uint32_t)v);
	team_wrong(wrong);
	team_meet();
	if (!member) {
		team_give(distance, bytes_of_vertices());
		team_give(parents, bytes_of_vertices());
	}
}

static void describe(struct json *json)
{
	json_unsigned(json, "scale", options.scale);
	json_unsigned(json, "edge_factor", options.edge_factor);
	json_unsigned(json, "seed", options.seed);
}

static const struct work work = {
	.type = "bfs",
	.operation = "searches",
	.item = "edges",
	.round = run_round,
	.check = check_round,
	.describe = describe,
};

int main(int argc, char **argv)
{
	set_program_name("bfs-bench");
	parse(argc, argv);
	team_place(&options.team);
	graph_make(&graph, options.scale, options.edge_factor, options.seed);
	if (!graph.first[graph.vertices])
		die(EXIT_USAGE, "no edge joins two vertices: choose another --seed");
	return team_run(&options.team, &work);
}
