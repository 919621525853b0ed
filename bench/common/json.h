/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * json.h - writes JSON lines: an object a line, its members in the order of the calls
 *
 * Who: all benchmark programs, for what `ceasefire bench` reads. It writes only, and
 *      numbers with as many digits as asked: no library is needed for that.
 */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Of all lines; raised when a field changes. */
#define JSON_SCHEMA 1

struct json {
	FILE *file;
	bool comma;		/* the next member follows another one */
};

/* A line with `schema` and `type`. */
void json_begin(struct json *json, FILE *file, const char *type);
/* Ends the line, and what is open in it must have been ended. */
void json_end(struct json *json);

void json_string(struct json *json, const char *name, const char *text);
void json_bool(struct json *json, const char *name, bool value);
void json_unsigned(struct json *json, const char *name, uint64_t value);
void json_signed(struct json *json, const char *name, int64_t value);
void json_real(struct json *json, const char *name, double value, int decimals);

void json_open_object(struct json *json, const char *name);
void json_close_object(struct json *json);
void json_open_list(struct json *json, const char *name);
/* Two numbers as a list that is an item of a list. */
void json_pair(struct json *json, uint64_t first, uint64_t second);
void json_close_list(struct json *json);

#endif /* BENCH_JSON_H */
