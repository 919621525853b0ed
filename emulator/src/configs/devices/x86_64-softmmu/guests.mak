# SPDX-License-Identifier: GPL-2.0-or-later
# The boards and devices of guests that run on the host's files, and what is
# asked for when memory management is under test. Others are left out: half of
# QEMU would be compiled for them. `scripts/emulator-build` names this file.
CONFIG_I440FX=y
CONFIG_Q35=y
CONFIG_HPET=y

CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_9P=y
CONFIG_VIRTIO_BALLOON=y
CONFIG_VIRTIO_BLK=y
CONFIG_VIRTIO_MEM=y
CONFIG_VIRTIO_NET=y
CONFIG_VIRTIO_PMEM=y
CONFIG_VIRTIO_RNG=y
CONFIG_VIRTIO_SCSI=y
CONFIG_VIRTIO_SERIAL=y

CONFIG_E1000_PCI=y
CONFIG_ISA_DEBUG=y
CONFIG_NVDIMM=y
CONFIG_NVME_PCI=y
CONFIG_WDT_IB6300ESB=y
