/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB tags: what the TCG accelerator calls
 */
#ifndef ACCEL_TCG_TLB_TAGS_INTERNAL_H
#define ACCEL_TCG_TLB_TAGS_INTERNAL_H

#include "qom/object.h"

void tlb_tags_add_property(ObjectClass *oc);

#endif /* ACCEL_TCG_TLB_TAGS_INTERNAL_H */
