/* SPDX-License-Identifier: GPL-2.0-only */
/* graph.h - an undirected Kronecker graph; see graph.c. */
#ifndef PARALLEL_GRAPH_H
#define PARALLEL_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

struct graph {
	uint32_t vertices;
	uint64_t *first;	/* of each vertex's neighbours, and one more: the end */
	uint32_t *neighbours;
};

void graph_make(struct graph *graph, unsigned int scale, unsigned int edge_factor, uint64_t seed);

static inline uint64_t graph_degree(const struct graph *graph, uint32_t vertex)
{
	return graph->first[vertex + 1] - graph->first[vertex];
}

static inline bool graph_has_edge(const struct graph *graph, uint32_t from, uint32_t to)
{
	for (uint64_t i = graph->first[from]; i < graph->first[from + 1]; i++) {
		if (graph->neighbours[i] == to)
			return true;
	}
	return false;
}

#endif /* PARALLEL_GRAPH_H */
