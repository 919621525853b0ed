// SPDX-License-Identifier: GPL-2.0-only
/*
 * test-glob.c - the library's matcher against fnmatch(3) (TAP)
 *
 * What: all short patterns against all short strings, then random long ones.
 *       Built with the address and undefined behaviour sanitizers; the short
 *       patterns end right before memory that may not be read.
 */
#include "../../lib/preload/glob.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN_LETTERS "ab*?[]!-^\\/"
#define STRING_LETTERS "ab-]/\\"
#define LONGEST_PATTERN 5
#define LONGEST_STRING 3
#define RANDOM_ROUNDS 400000

static int tests, failures;
static unsigned long compared, matched, differences;

static void report(int ok, const char *name)
{
	tests++;
	failures += !ok;
	printf("%sok %d - %s\n", ok ? "" : "not ", tests, name);
}

/* The next word over @letters, "" first; false after the last one. */
static int next_word(char *word, const char *letters, size_t longest)
{
	size_t length = strlen(word), i = length;

	while (i > 0) {
		const char *at = strchr(letters, word[i - 1]);

		if (at[1]) {
			word[i - 1] = at[1];
			return 1;
		}
		word[--i] = letters[0];
	}
	if (length == longest)
		return 0;
	word[length] = letters[0];
	word[length + 1] = '\0';
	return 1;
}

static void compare(const char *pattern, const char *string)
{
	int expected = fnmatch(pattern, string, 0) == 0;

	compared++;
	matched += (unsigned long)expected;
	if ((int)glob_matches(pattern, string) == expected)
		return;
	if (differences++ < 10)
		printf("# pattern \"%s\", string \"%s\": fnmatch says %d\n",
		       pattern, string, expected);
}

static void all_short_words(void)
{
	char pattern[LONGEST_PATTERN + 2] = "";
	char *exact;

	do {
		char string[LONGEST_STRING + 2] = "";

		/* A copy of the exact size, so that overruns are seen. */
		exact = strdup(pattern);
		do {
			compare(exact, string);
		} while (next_word(string, STRING_LETTERS, LONGEST_STRING));
		free(exact);
	} while (next_word(pattern, PATTERN_LETTERS, LONGEST_PATTERN));
}

static void random_word(char *word, const char *letters, size_t longest)
{
	size_t count = strlen(letters), length = (size_t)rand() % longest;

	for (size_t i = 0; i < length; i++)
		word[i] = letters[(size_t)rand() % count];
	word[length] = '\0';
}

static void random_words(void)
{
	char pattern[41], string[61];

	srand(1);
	for (int i = 0; i < RANDOM_ROUNDS; i++) {
		/* Sets with every letter, and letters that sets split. */
		random_word(pattern, "aab/*?[]-!c\\*", sizeof(pattern));
		random_word(string, "ab/c-", sizeof(string));
		compare(pattern, string);
	}
}

static void hard_pattern(void)
{
	char pattern[401], string[4001];

	for (size_t i = 0; i < 400; i += 2)
		memcpy(pattern + i, "*a", 2);
	memcpy(pattern + 398, "*b", 3);
	memset(string, 'a', 4000);
	string[4000] = '\0';
	/* Takes no time with one point of return, forever with a search. */
	report(!glob_matches(pattern, string), "200 stars end in time");
}

int main(void)
{
	report(glob_matches("/*b", "/a/b"), "* matches a slash");
	all_short_words();
	printf("# %lu comparisons, %lu matches\n", compared, matched);
	report(!differences && matched > 100000, "as fnmatch: short words");
	compared = matched = differences = 0;
	random_words();
	printf("# %lu comparisons, %lu matches\n", compared, matched);
	report(!differences && matched > 1000, "as fnmatch: random words");
	hard_pattern();
	report(glob_matches_everything("*") && glob_matches_everything("**"),
	       "patterns that match everything");
	report(!glob_matches_everything("") && !glob_matches_everything("*a") &&
	       !glob_matches_everything("/*"), "patterns that do not");
	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}
