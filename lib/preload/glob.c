// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * glob.c - match a path against a shell pattern, anywhere
 *
 * What: `*`, `?`, `[set]`, `[!set]` and `\x`, with the meaning of fnmatch(3)
 *       without flags in the C locale: wildcards match `/` and a leading dot
 *       too. Named classes ([:alpha:]) are not known: `:` separates patterns.
 * Why:  the C library's fnmatch() allocates for multibyte locales and long
 *       patterns, so it must not run inside mmap().
 * Who:  config.c (executables) and mmap.c (files); tests/preload/test-glob.c
 *       compares it with fnmatch().
 *
 * No allocation, no recursion, at most pattern length x string length steps.
 */
#include "glob.h"

#include <stddef.h>

/* One character of a set, an escaped one without its backslash. */
static const char *set_char(const char *p, unsigned char *c)
{
	if (*p == '\\')
		p++;
	*c = (unsigned char)*p;
	return *p ? p + 1 : NULL;
}

/*
 * @p is behind the `[`. Returns the place behind the `]`, NULL when there is
 * none (the `[` then stands for itself).
 */
static const char *match_set(const char *p, unsigned char c, bool *matched)
{
	bool negated = *p == '!' || *p == '^';
	bool hit = false;
	bool first = true;

	if (negated)
		p++;
	for (; *p != ']' || first; first = false) {
		unsigned char low, high;

		p = set_char(p, &low);
		if (!p)
			return NULL;
		high = low;
		if (p[0] == '-' && p[1] && p[1] != ']') {
			p = set_char(p + 1, &high);
			if (!p)
				return NULL;
		}
		if (low <= c && c <= high)
			hit = true;
	}
	*matched = hit != negated;
	return p + 1;
}

/*
 * Match one character with the head of the pattern, which is not a `*`.
 * Returns the rest of the pattern, NULL when they do not match.
 */
static const char *match_char(const char *p, unsigned char c)
{
	const char *rest;
	bool matched;

	switch (*p) {
	case '\0':
		return NULL;
	case '?':
		return p + 1;
	case '[':
		rest = match_set(p + 1, c, &matched);
		if (rest)
			return matched ? rest : NULL;
		break;
	case '\\':
		p++;
		if (!*p)
			return NULL;
		break;
	}
	return (unsigned char)*p == c ? p + 1 : NULL;
}

bool glob_matches(const char *pattern, const char *string)
{
	/* Where to go on when a later mismatch lengthens the last `*`. */
	const char *star = NULL;
	const char *star_string = NULL;

	while (*string) {
		const char *rest;

		if (*pattern == '*') {
			star = ++pattern;
			star_string = string;
			continue;
		}
		rest = match_char(pattern, (unsigned char)*string);
		if (rest) {
			pattern = rest;
			string++;
		} else if (star) {
			pattern = star;
			string = ++star_string;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* True for `*`, `**`...: then the path need not even be looked up. */
bool glob_matches_everything(const char *pattern)
{
	if (!*pattern)
		return false;
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
