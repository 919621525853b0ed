/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB tags: the property tlb-tags of the TCG accelerator
 *
 * The tags themselves are in tlb-tags.c.inc, inside cputlb.c.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qom/object.h"
#include "exec/tlb-tags.h"
#include "tlb-tags-internal.h"

static void get_tlb_tags(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    visit_type_uint32(v, name, &tlb_tags_sets, errp);
}

static void set_tlb_tags(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    uint32_t value;

    if (!visit_type_uint32(v, name, &value, errp)) {
        return;
    }
    if (value < 2 || value > 4096) {
        error_setg(errp, "tlb-tags has to be from 2 to 4096");
        return;
    }
    tlb_tags_sets = value;
}

void tlb_tags_add_property(ObjectClass *oc)
{
    object_class_property_add(oc, "tlb-tags", "int", get_tlb_tags,
                              set_tlb_tags, NULL, NULL);
    object_class_property_set_description(oc, "tlb-tags",
        "How many address space tags (x86: PCIDs) have TLB entries at a time");
}
