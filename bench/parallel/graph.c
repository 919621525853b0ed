// SPDX-License-Identifier: GPL-2.0-only
/*
 * graph.c - an undirected Kronecker graph, as Graph500 describes it
 *
 * What: 2^scale vertices and edge_factor times as many edges. For each edge one
 *       of four quadrants is chosen scale times, with the probabilities A, B, C and
 *       the rest; then vertices change their numbers, so that those with many
 *       edges are not the first ones. Edges from a vertex to itself are left out,
 *       edges that come twice are not. The same arguments make the same graph.
 * Who:  bfs.c, once, by the first thread: all of it is on that thread's node.
 */
#include "graph.h"
#include "team.h"

/* 0.57, 0.19 and 0.19 of 2^32. */
#define A 2448131359ULL
#define B 816043786ULL
#define C 816043786ULL

struct edge {
	uint32_t from, to;
};

/* One to one: odd factors and shifts to the right can be undone. */
static uint32_t renumbered(uint32_t vertex, unsigned int scale)
{
	uint32_t mask = (uint32_t)((1ULL << scale) - 1);

	for (unsigned int i = 0; i < 3; i++) {
		vertex = (vertex * 0x9e3779b1U + 0x7f4a7c15U) & mask;
		vertex ^= vertex >> (scale / 2);
	}
	return vertex;
}

/* The same one each time that it is asked for: edges are not kept. */
static struct edge edge_number(uint64_t number, unsigned int scale, uint64_t seed)
{
	uint64_t state = mix(seed + mix(number));
	uint32_t from = 0, to = 0;

	for (unsigned int i = 0; i < scale; i++) {
		uint64_t chance;

		state = mix(state + 0x9e3779b97f4a7c15ULL);
		chance = state >> 32;
		from = from << 1 | (chance >= A + B);
		to = to << 1 | ((chance >= A && chance < A + B) || chance >= A + B + C);
	}
	return (struct edge){ renumbered(from, scale), renumbered(to, scale) };
}

void graph_make(struct graph *graph, unsigned int scale, unsigned int edge_factor, uint64_t seed)
{
	uint64_t edges = (uint64_t)edge_factor << scale, bytes, total;
	uint64_t *place;

	graph->vertices = 1U << scale;
	bytes = (graph->vertices + 1ULL) * sizeof(uint64_t);
	graph->first = team_take(bytes);
	/* How many neighbours each vertex has, then where they begin. */
	for (uint64_t i = 0; i < edges; i++) {
		struct edge edge = edge_number(i, scale, seed);

		if (edge.from != edge.to) {
			graph->first[edge.from + 1]++;
			graph->first[edge.to + 1]++;
		}
	}
	for (uint32_t v = 0; v < graph->vertices; v++)
		graph->first[v + 1] += graph->first[v];
	total = graph->first[graph->vertices];
	graph->neighbours = team_take((total + 1) * sizeof(uint32_t));
	place = team_take(bytes);
	for (uint32_t v = 0; v < graph->vertices; v++)
		place[v] = graph->first[v];
	for (uint64_t i = 0; i < edges; i++) {
		struct edge edge = edge_number(i, scale, seed);

		if (edge.from != edge.to) {
			graph->neighbours[place[edge.from]++] = edge.to;
			graph->neighbours[place[edge.to]++] = edge.from;
		}
	}
	team_give(place, bytes);
}
