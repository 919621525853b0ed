// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/mm/ceasefire and the boot parameter. One value a file, but for meminfo; described
 * in Documentation/ABI/testing/sysfs-kernel-mm-ceasefire. Counters are in
 * /proc/vmstat.
 */
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "core/core.h"
#include "fpr/fpr.h"
#include "latr/latr.h"
#include "morsel/morsel.h"
#include "sharers/sharers.h"
#include "abis/abis.h"

/* Nothing where it was not built. */
static void __init cf_latr_enable(bool on)
{
#ifdef CONFIG_CEASEFIRE_LATR
	latr_enabled = on ? LATR_ALWAYS : LATR_NEVER;
#endif
}

static void __init cf_sharers_enable(bool on)
{
#ifdef CONFIG_CEASEFIRE_SHARERS
	sharers_enabled = on ? SHARERS_ALWAYS : SHARERS_NEVER;
#endif
}

static void __init cf_abis_enable(bool on)
{
#ifdef CONFIG_CEASEFIRE_ABIS
	abis_enabled = on ? ABIS_ALWAYS : ABIS_NEVER;
#endif
}

static void __init cf_morsel_enable(bool on)
{
#ifdef CONFIG_CEASEFIRE_MORSEL
	morsel_enabled = on ? MORSEL_ASK : MORSEL_NEVER;
#endif
}

/*
 * ceasefire=off, or a comma separated list of the mechanisms to switch on: those that
 * need no flag for all processes.
 */
static int __init ceasefire_setup(char *str)
{
	char *name;

	fpr_enabled = false;
	cf_latr_enable(false);
	cf_sharers_enable(false);
	cf_abis_enable(false);
	cf_morsel_enable(false);
	while ((name = strsep(&str, ","))) {
		if (!strcmp(name, "fpr"))
			fpr_enabled = true;
		else if (!strcmp(name, "latr"))
			cf_latr_enable(true);
		else if (!strcmp(name, "sharers"))
			cf_sharers_enable(true);
		else if (!strcmp(name, "abis"))
			cf_abis_enable(true);
		else if (!strcmp(name, "morsel"))
			cf_morsel_enable(true);
		else if (*name && strcmp(name, "off"))
			pr_warn("ceasefire: unknown mechanism '%s', known: fpr, latr, sharers, abis, morsel\n",
				name);
	}
	return 1;
}
__setup("ceasefire=", ceasefire_setup);

static ssize_t features_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "fpr%s%s%s%s\n",
			  IS_ENABLED(CONFIG_CEASEFIRE_LATR) ? " latr" : "",
			  IS_ENABLED(CONFIG_CEASEFIRE_SHARERS) ? " sharers" : "",
			  IS_ENABLED(CONFIG_CEASEFIRE_ABIS) ? " abis" : "",
			  IS_ENABLED(CONFIG_CEASEFIRE_MORSEL) ? " morsel" : "");
}

static struct kobj_attribute features_attr = __ATTR_RO(features);

/* Switches. */
#define CF_SWITCH(name, variable)					\
static ssize_t name##_show(struct kobject *kobj,			\
			   struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%d\n", READ_ONCE(variable));		\
}									\
									\
static ssize_t name##_store(struct kobject *kobj,			\
			    struct kobj_attribute *attr,		\
			    const char *buf, size_t count)		\
{									\
	bool on;							\
	int err = kstrtobool(buf, &on);					\
									\
	if (err)							\
		return err;						\
	WRITE_ONCE(variable, on);					\
	return count;							\
}									\
									\
static struct kobj_attribute name##_attr = __ATTR_RW(name)

CF_SWITCH(enabled, fpr_enabled);
CF_SWITCH(evict, cf_young_trusted);

/* Limits, in base pages. */
#define CF_LIMIT(name, variable)					\
static ssize_t name##_show(struct kobject *kobj,			\
			   struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%lu\n", READ_ONCE(variable));		\
}									\
									\
static ssize_t name##_store(struct kobject *kobj,			\
			    struct kobj_attribute *attr,		\
			    const char *buf, size_t count)		\
{									\
	unsigned long nr;						\
	int err = kstrtoul(buf, 0, &nr);				\
									\
	if (err)							\
		return err;						\
	WRITE_ONCE(variable, nr);					\
	return count;							\
}									\
									\
static struct kobj_attribute name##_attr = __ATTR_RW(name)

CF_LIMIT(pool_limit, cf_pool_limit);
CF_LIMIT(parked_limit, cf_parked_limit);
CF_LIMIT(stale_limit, cf_stale_limit);

/* Times, in milliseconds. A debt that is never settled is not on offer. */
#define CF_TIME(name, variable)						\
static ssize_t name##_show(struct kobject *kobj,			\
			   struct kobj_attribute *attr, char *buf)	\
{									\
	return sysfs_emit(buf, "%u\n", READ_ONCE(variable));		\
}									\
									\
static ssize_t name##_store(struct kobject *kobj,			\
			    struct kobj_attribute *attr,		\
			    const char *buf, size_t count)		\
{									\
	unsigned int ms;						\
	int err = kstrtouint(buf, 0, &ms);				\
									\
	if (err)							\
		return err;						\
	if (ms < 2 || ms > 60 * MSEC_PER_SEC)				\
		return -ERANGE;						\
	WRITE_ONCE(variable, ms);					\
	return count;							\
}									\
									\
static struct kobj_attribute name##_attr = __ATTR_RW(name)

CF_TIME(debt_age_ms, cf_debt_age_ms);

static ssize_t parked_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%ld\n", cf_parked());
}

static struct kobj_attribute parked_attr = __ATTR_RO(parked);

/* All memory of ceasefire, a line each. */
static ssize_t meminfo_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	unsigned long parked = cf_parked();

	CF_MUTATION(fpr_hide_parked, parked = 0);

	return sysfs_emit(buf,
			  "Parked:     %8lu kB\n"
			  "Tags:       %8lu kB\n"
			  "Contexts:   %8lu kB\n",
			  parked << (PAGE_SHIFT - 10),
			  cf_tags_bytes() >> 10,
			  DIV_ROUND_UP(cf_ctx_count() * sizeof(struct cf_ctx) +
				       cf_group_bytes(), 1024));
}

static struct kobj_attribute meminfo_attr = __ATTR_RO(meminfo);

static ssize_t contexts_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%u\n", cf_ctx_count());
}

static struct kobj_attribute contexts_attr = __ATTR_RO(contexts);

static ssize_t groups_show(struct kobject *kobj, struct kobj_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "%u\n", cf_group_count());
}

static struct kobj_attribute groups_attr = __ATTR_RO(groups);

static ssize_t tag_bytes_show(struct kobject *kobj, struct kobj_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "%lu\n", cf_tags_bytes());
}

static struct kobj_attribute tag_bytes_attr = __ATTR_RO(tag_bytes);

static struct attribute *ceasefire_attrs[] = {
	&features_attr.attr,
	NULL,
};

static struct attribute *fpr_attrs[] = {
	&enabled_attr.attr,
	&pool_limit_attr.attr,
	&parked_limit_attr.attr,
	&stale_limit_attr.attr,
	&debt_age_ms_attr.attr,
	&evict_attr.attr,
	&meminfo_attr.attr,
	&parked_attr.attr,
	&contexts_attr.attr,
	&groups_attr.attr,
	&tag_bytes_attr.attr,
	NULL,
};

static const struct attribute_group ceasefire_group = {
	.attrs = ceasefire_attrs,
};

static const struct attribute_group fpr_group = {
	.name = "fpr",
	.attrs = fpr_attrs,
};

/* As the switches of transparent huge pages: all, the chosen one in brackets. */
static const char * const cf_whom_names[] = { "never", "ask", "always" };

static ssize_t __maybe_unused cf_whom_show(char *buf, int now)
{
	int i, len = 0;

	for (i = 0; i < ARRAY_SIZE(cf_whom_names); i++)
		len += sysfs_emit_at(buf, len, i == now ? "%s[%s]" : "%s%s",
				     i ? " " : "", cf_whom_names[i]);
	return len + sysfs_emit_at(buf, len, "\n");
}

#ifdef CONFIG_CEASEFIRE_LATR

static_assert(LATR_NEVER == 0 && LATR_ASK == 1 && LATR_ALWAYS == 2);

static ssize_t latr_enabled_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	return cf_whom_show(buf, READ_ONCE(latr_enabled));
}

static ssize_t latr_enabled_store(struct kobject *kobj,
				  struct kobj_attribute *attr, const char *buf,
				  size_t count)
{
	int chosen = sysfs_match_string(cf_whom_names, buf);

	if (chosen < 0)
		return chosen;
	WRITE_ONCE(latr_enabled, chosen);
	return count;
}

static struct kobj_attribute latr_enabled_attr =
	__ATTR(enabled, 0644, latr_enabled_show, latr_enabled_store);
CF_TIME(settle_ms, latr_settle_ms);
CF_TIME(late_ms, latr_late_ms);
CF_LIMIT(held_limit, latr_held_limit);

static struct attribute *latr_attrs[] = {
	&latr_enabled_attr.attr,
	&settle_ms_attr.attr,
	&late_ms_attr.attr,
	&held_limit_attr.attr,
	NULL,
};

static const struct attribute_group latr_group = {
	.name = "latr",
	.attrs = latr_attrs,
};

#endif /* CONFIG_CEASEFIRE_LATR */

#ifdef CONFIG_CEASEFIRE_SHARERS

static_assert(SHARERS_NEVER == 0 && SHARERS_ASK == 1 && SHARERS_ALWAYS == 2);

static ssize_t sharers_enabled_show(struct kobject *kobj,
				    struct kobj_attribute *attr, char *buf)
{
	return cf_whom_show(buf, READ_ONCE(sharers_enabled));
}

static ssize_t sharers_enabled_store(struct kobject *kobj,
				     struct kobj_attribute *attr,
				     const char *buf, size_t count)
{
	int chosen = sysfs_match_string(cf_whom_names, buf);

	if (chosen < 0)
		return chosen;
	sharers_enable(chosen);
	return count;
}

static struct kobj_attribute sharers_enabled_attr =
	__ATTR(enabled, 0644, sharers_enabled_show, sharers_enabled_store);

CF_SWITCH(placement, sharers_placement);

static struct attribute *sharers_attrs[] = {
	&sharers_enabled_attr.attr,
	&placement_attr.attr,
	NULL,
};

static const struct attribute_group sharers_group = {
	.name = "sharers",
	.attrs = sharers_attrs,
};

#endif /* CONFIG_CEASEFIRE_SHARERS */

#ifdef CONFIG_CEASEFIRE_ABIS

static_assert(ABIS_NEVER == 0 && ABIS_ASK == 1 && ABIS_ALWAYS == 2);

static ssize_t abis_enabled_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	return cf_whom_show(buf, READ_ONCE(abis_enabled));
}

static ssize_t abis_enabled_store(struct kobject *kobj,
				  struct kobj_attribute *attr, const char *buf,
				  size_t count)
{
	int chosen = sysfs_match_string(cf_whom_names, buf);

	if (chosen < 0)
		return chosen;
	WRITE_ONCE(abis_enabled, chosen);
	return count;
}

static struct kobj_attribute abis_enabled_attr =
	__ATTR(enabled, 0644, abis_enabled_show, abis_enabled_store);

/* The names of those that are on, or "none". */
static ssize_t sources_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	unsigned long sources = READ_ONCE(abis_sources);
	int i, len = 0;

	for_each_set_bit(i, &sources, ABIS_SOURCE_NR)
		len += sysfs_emit_at(buf, len, "%s%s", len ? " " : "",
				     abis_source_names[i]);
	return len + sysfs_emit_at(buf, len, len ? "\n" : "none\n");
}

static ssize_t sources_store(struct kobject *kobj, struct kobj_attribute *attr,
			     const char *buf, size_t count)
{
	unsigned long sources = 0;
	char names[64], *rest = names, *name;
	int i;

	if (strscpy(names, buf, sizeof(names)) < 0)
		return -EINVAL;
	while ((name = strsep(&rest, " ,\n"))) {
		if (!*name || !strcmp(name, "none"))
			continue;
		i = match_string(abis_source_names, ABIS_SOURCE_NR, name);
		if (i < 0)
			return i;
		__set_bit(i, &sources);
	}
	if (test_bit(ABIS_SOURCE_INSERTED, &sources)) {
		i = abis_insert_prepare();
		if (i)
			return i;
	}
	WRITE_ONCE(abis_sources, sources);
	return count;
}

static struct kobj_attribute sources_attr = __ATTR_RW(sources);

static struct attribute *abis_attrs[] = {
	&abis_enabled_attr.attr,
	&sources_attr.attr,
	NULL,
};

static const struct attribute_group abis_group = {
	.name = "abis",
	.attrs = abis_attrs,
};

#endif /* CONFIG_CEASEFIRE_ABIS */

#ifdef CONFIG_CEASEFIRE_MORSEL

static_assert(MORSEL_NEVER == 0 && MORSEL_ASK == 1);

static ssize_t morsel_enabled_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", READ_ONCE(morsel_enabled) == MORSEL_ASK ?
				       "never [ask]" : "[never] ask");
}

static ssize_t morsel_enabled_store(struct kobject *kobj,
				    struct kobj_attribute *attr,
				    const char *buf, size_t count)
{
	int chosen = sysfs_match_string(cf_whom_names, buf);

	if (chosen < 0)
		return chosen;
	if (chosen > MORSEL_ASK)
		return -EINVAL;
	WRITE_ONCE(morsel_enabled, chosen);
	return count;
}

static struct kobj_attribute morsel_enabled_attr =
	__ATTR(enabled, 0644, morsel_enabled_show, morsel_enabled_store);

CF_LIMIT(limit, morsel_limit);
CF_LIMIT(lazy_limit, morsel_pool_limit);

static ssize_t pages_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	return sysfs_emit(buf, "%lu\n", morsel_total());
}

static struct kobj_attribute pages_attr = __ATTR_RO(pages);

static struct attribute *morsel_attrs[] = {
	&morsel_enabled_attr.attr,
	&limit_attr.attr,
	&lazy_limit_attr.attr,
	&pages_attr.attr,
	NULL,
};

static const struct attribute_group morsel_group = {
	.name = "morsel",
	.attrs = morsel_attrs,
};

#endif /* CONFIG_CEASEFIRE_MORSEL */

static const struct attribute_group *ceasefire_groups[] = {
	&ceasefire_group,
	&fpr_group,
#ifdef CONFIG_CEASEFIRE_LATR
	&latr_group,
#endif
#ifdef CONFIG_CEASEFIRE_SHARERS
	&sharers_group,
#endif
#ifdef CONFIG_CEASEFIRE_ABIS
	&abis_group,
#endif
#ifdef CONFIG_CEASEFIRE_MORSEL
	&morsel_group,
#endif
	NULL,
};

static int __init ceasefire_sysfs_init(void)
{
	struct kobject *kobj = kobject_create_and_add("ceasefire", mm_kobj);
	int err;

	if (!kobj)
		return -ENOMEM;
	err = sysfs_create_groups(kobj, ceasefire_groups);
	if (err)
		kobject_put(kobj);
	return err;
}
subsys_initcall(ceasefire_sysfs_init);
