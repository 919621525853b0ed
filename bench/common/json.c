// SPDX-License-Identifier: GPL-2.0-only
/* json.c - writes JSON lines, see json.h. */
#include "json.h"

#include <inttypes.h>

static void write_text(FILE *file, const char *text)
{
	fputc('"', file);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", c);
		else if (c < 0x20)
			fprintf(file, "\\u%04x", c);
		else
			fputc(c, file);
	}
	fputc('"', file);
}

static void write_comma(struct json *json)
{
	if (json->comma)
		fputc(',', json->file);
	json->comma = true;
}

static void write_name(struct json *json, const char *name)
{
	write_comma(json);
	write_text(json->file, name);
	fputc(':', json->file);
}

void json_begin(struct json *json, FILE *file, const char *type)
{
	*json = (struct json){ .file = file };
	fputc('{', file);
	json_unsigned(json, "schema", JSON_SCHEMA);
	json_string(json, "type", type);
}

void json_end(struct json *json)
{
	fputs("}\n", json->file);
	fflush(json->file);
}

void json_string(struct json *json, const char *name, const char *text)
{
	write_name(json, name);
	write_text(json->file, text);
}

void json_bool(struct json *json, const char *name, bool value)
{
	write_name(json, name);
	fputs(value ? "true" : "false", json->file);
}

void json_unsigned(struct json *json, const char *name, uint64_t value)
{
	write_name(json, name);
	fprintf(json->file, "%" PRIu64, value);
}

void json_signed(struct json *json, const char *name, int64_t value)
{
	write_name(json, name);
	fprintf(json->file, "%" PRId64, value);
}

void json_real(struct json *json, const char *name, double value, int decimals)
{
	write_name(json, name);
	fprintf(json->file, "%.*f", decimals, value);
}

void json_open_object(struct json *json, const char *name)
{
	write_name(json, name);
	fputc('{', json->file);
	json->comma = false;
}

void json_close_object(struct json *json)
{
	fputc('}', json->file);
	json->comma = true;
}

void json_open_list(struct json *json, const char *name)
{
	write_name(json, name);
	fputc('[', json->file);
	json->comma = false;
}

void json_pair(struct json *json, uint64_t first, uint64_t second)
{
	write_comma(json);
	fprintf(json->file, "[%" PRIu64 ",%" PRIu64 "]", first, second);
}

void json_close_list(struct json *json)
{
	fputc(']', json->file);
	json->comma = true;
}
