// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels as objects: made and destroyed.
 *
 * A morsel is an inode: of a file system that nobody mounts, if memfd_create() makes it, or
 * one with a name, see names.c. It goes with its last descriptor, mapping and name.
 *
 * Locks: the inode's. Callers: memfd_create(), names.c, the VFS.
 */
#include <linux/ceasefire.h>
#include <linux/cpufeature.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>
#include <linux/security.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/statfs.h>
#include <linux/string.h>

#include <uapi/linux/memfd.h>

#include "morsel.h"

#define MORSEL_NAME	"memfd:"

enum morsel_enabled morsel_enabled __read_mostly = MORSEL_ASK;

static struct kmem_cache *morsel_cache;
static struct vfsmount *morsel_mount;

static int morsel_setattr(struct mnt_idmap *idmap, struct dentry *dentry,
			  struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	int err = setattr_prepare(idmap, dentry, attr);

	if (!err && attr->ia_valid & ATTR_SIZE)
		err = morsel_set_size(morsel_of(inode), attr->ia_size);
	if (err)
		return err;
	setattr_copy(idmap, inode, attr);
	/* truncate() leaves this to others. */
	if (attr->ia_valid & ATTR_SIZE)
		inode_set_mtime_to_ts(inode, inode_set_ctime_current(inode));
	return 0;
}

static int morsel_getattr(struct mnt_idmap *idmap, const struct path *path,
			  struct kstat *stat, u32 mask, unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);

	generic_fillattr(idmap, mask, inode, stat);
	stat->blocks = (u64)atomic_long_read(&morsel_of(inode)->pages) <<
		       (PAGE_SHIFT - SECTOR_SHIFT);
	return 0;
}

static const struct inode_operations morsel_iops = {
	.setattr = morsel_setattr,
	.getattr = morsel_getattr,
};

/* Pages are not in the page cache; pins mark them as dirty. */
const struct address_space_operations morsel_aops = {
	.dirty_folio = noop_dirty_folio,
};

/* Folders are such inodes, too; morsel_setup() gives one what it needs as a morsel. */
static struct inode *morsel_alloc_inode(struct super_block *sb)
{
	struct morsel *m = alloc_inode_sb(sb, morsel_cache, GFP_KERNEL);

	if (!m)
		return NULL;
	m->top = NULL;
	m->level = 0;
	m->base = 1;
	xa_init(&m->lost);
	mutex_init(&m->filling);
	m->broken = false;
	m->counted = false;
	m->address = 0;
	spin_lock_init(&m->lock);
	bitmap_zero(m->roots, MORSEL_UNITS_MAX);
	m->objcg = NULL;
	atomic_long_set(&m->mapped, 0);
	atomic_long_set(&m->pages, 0);
	atomic_long_set(&m->tables, 0);
	atomic_long_set(&m->cuts, 0);
	atomic_long_set(&m->flushes, 0);
	atomic_set(&m->cutting, 0);
	atomic_set(&m->unlinking, 0);
	spin_lock_init(&m->cut_lock);
	INIT_LIST_HEAD(&m->cut);
	m->nr_cut = 0;
	INIT_DELAYED_WORK(&m->settle, morsel_settle);
	mutex_init(&m->settling);
	INIT_LIST_HEAD(&m->steal);
	m->steal_at = 0;
	m->steal_taken = 0;
	m->steal_weight = 0;
	m->steal_barren = 0;
	m->shares = false;
	m->copying = false;
	m->becoming = false;
	m->pinned = false;
	m->family = NULL;
	m->dead = false;
	atomic_set(&m->held, 1);
	morsel_async_setup(m);
	morsel_lazy_setup(m);
	return &m->inode;
}

static void morsel_evict_inode(struct inode *inode)
{
	struct morsel *m = morsel_of(inode);

	morsel_steal_end(m);
	/* Before the rest: cleaners queue what clean.c waits for. */
	morsel_async_end(m);
	morsel_lazy_end(m);
	morsel_family_leave(m);
	if (m->top)
		morsel_clean_all(m);
	xa_destroy(&m->lost);
	morsel_family_end(m);
	morsel_uncount_object(m);
	clear_inode(inode);
}

/* RCU: who looks for the name of a futex may still have the mapping of a page. */
static void morsel_free_inode(struct inode *inode)
{
	morsel_put_memory(morsel_of(inode));
}

/* As many pages as all morsels may have, wherever they are. */
static int morsel_statfs(struct dentry *dentry, struct kstatfs *buf)
{
	unsigned long most = READ_ONCE(morsel_limit);

	simple_statfs(dentry, buf);
	buf->f_blocks = most;
	buf->f_bfree = most - min(most, morsel_total());
	buf->f_bavail = buf->f_bfree;
	return 0;
}

/* What the first folder of a mount is like now. */
static int morsel_show_options(struct seq_file *s, struct dentry *root)
{
	struct inode *inode = d_inode(root);

	seq_printf(s, ",mode=%04o", inode->i_mode & S_IALLUGO);
	if (!uid_eq(inode->i_uid, GLOBAL_ROOT_UID))
		seq_printf(s, ",uid=%u", from_kuid_munged(&init_user_ns,
							  inode->i_uid));
	if (!gid_eq(inode->i_gid, GLOBAL_ROOT_GID))
		seq_printf(s, ",gid=%u", from_kgid_munged(&init_user_ns,
							  inode->i_gid));
	return 0;
}

const struct super_operations morsel_sops = {
	.alloc_inode = morsel_alloc_inode,
	.free_inode = morsel_free_inode,
	.evict_inode = morsel_evict_inode,
	.drop_inode = generic_delete_inode,
	.statfs = morsel_statfs,
	.show_options = morsel_show_options,
};

/**
 * morsel_setup() - a new inode becomes a morsel
 * @inode: of a regular file, which nobody else has; it has an owner
 *
 * Return: 0, or -ENOMEM: there is no memory, or the limit is reached.
 */
int morsel_setup(struct inode *inode)
{
	struct morsel *m = morsel_of(inode);
	int err = morsel_count_object(m);

	if (err)
		return err;
	m->top = (unsigned long *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!m->top)
		return -ENOMEM;
	inode->i_op = &morsel_iops;
	inode->i_fop = &morsel_fops;
	inode->i_mapping->a_ops = &morsel_aops;
	mapping_set_unevictable(inode->i_mapping);
#ifdef CONFIG_MEMCG
	m->objcg = get_obj_cgroup_from_current();
#endif
	return 0;
}

static struct inode *morsel_new_inode(const char *name)
{
	struct inode *inode = new_inode(morsel_mount->mnt_sb);
	int err;

	if (!inode)
		return ERR_PTR(-ENOMEM);
	inode->i_ino = get_next_ino();
	inode_init_owner(&nop_mnt_idmap, inode, NULL, S_IFREG | 0600);
	simple_inode_init_ts(inode);
	clear_nlink(inode);
	err = morsel_setup(inode);
	if (!err)
		err = security_inode_init_security_anon(inode, &QSTR(name),
							NULL);
	if (err) {
		iput(inode);
		return ERR_PTR(err);
	}
	return inode;
}

static struct file *morsel_new_file(const char *name, u64 base)
{
	struct inode *inode = morsel_new_inode(name);
	struct file *file;
	int err;

	if (IS_ERR(inode))
		return ERR_CAST(inode);
	err = morsel_set_base(morsel_of(inode), base);
	if (err) {
		iput(inode);
		return ERR_PTR(err);
	}
	file = alloc_file_pseudo(inode, morsel_mount, name,
				 O_RDWR | O_LARGEFILE, &morsel_fops);
	if (IS_ERR(file)) {
		iput(inode);
		return file;
	}
	file->f_mode |= FMODE_LSEEK | FMODE_PREAD | FMODE_PWRITE;
	return file;
}

/**
 * morsel_allowed() - can this kernel have morsels here, and may programs make some?
 *
 * Return: 0; -EOPNOTSUPP: not here; -EPERM: root does not allow it.
 */
int morsel_allowed(void)
{
	if (!morsel_mount || cpu_feature_enabled(X86_FEATURE_XENPV))
		return -EOPNOTSUPP;
	CF_MUTATION(morsel_any_makes, return 0);
	return READ_ONCE(morsel_enabled) == MORSEL_NEVER ? -EPERM : 0;
}

/**
 * morsel_create() - memfd_create(name, MFD_MORSEL)
 * @uname: the name of the program
 * @flags: MFD_*; MFD_HUGE_2MB and MFD_HUGE_1GB say how large its pages are
 *
 * Return: a descriptor; -EINVAL: unknown flags, or no such pages; -EOPNOTSUPP: not on Xen PV, or
 * pages that the processor does not have; -EPERM: root does not allow it, or not pages of 1 GiB;
 * -ENOMEM, -EFAULT, -EMFILE.
 */
int morsel_create(const char __user *uname, unsigned int flags)
{
	unsigned int shift = flags >> MFD_HUGE_SHIFT & MFD_HUGE_MASK;
	char name[NAME_MAX + 1] = MORSEL_NAME;
	size_t room = sizeof(name) - (sizeof(MORSEL_NAME) - 1);
	struct file *file;
	int fd, err;
	long len;

	/* It is never executable: MFD_NOEXEC_SEAL is granted. */
	if (flags & ~(MFD_MORSEL | MFD_CLOEXEC | MFD_NOEXEC_SEAL |
		      (unsigned int)MFD_HUGE_MASK << MFD_HUGE_SHIFT))
		return -EINVAL;
	err = morsel_allowed();
	if (err)
		return err;
	len = strncpy_from_user(name + sizeof(MORSEL_NAME) - 1, uname, room);
	if (len < 0)
		return len;
	if (len == room)
		return -EINVAL;
	fd = get_unused_fd_flags(flags & MFD_CLOEXEC ? O_CLOEXEC : 0);
	if (fd < 0)
		return fd;
	file = morsel_new_file(name, 1ULL << (shift ?: PAGE_SHIFT));
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	fd_install(fd, file);
	return fd;
}

static int morsel_init_fs_context(struct fs_context *fc)
{
	struct pseudo_fs_context *ctx = init_pseudo(fc, MORSEL_MAGIC);

	if (!ctx)
		return -ENOMEM;
	ctx->ops = &morsel_sops;
	fc->s_iflags |= SB_I_NOEXEC | SB_I_NODEV;
	return 0;
}

static struct file_system_type morsel_fs = {
	.name = "memfd_morsel",
	.init_fs_context = morsel_init_fs_context,
	.kill_sb = kill_anon_super,
};

static void morsel_init_once(void *object)
{
	struct morsel *m = object;

	inode_init_once(&m->inode);
}

static int __init morsel_init(void)
{
	struct vfsmount *mount;

	morsel_memory_init();
	if (morsel_clean_init() || morsel_rest_init() || morsel_steal_init())
		return -ENOMEM;
	morsel_cache = kmem_cache_create("morsel", sizeof(struct morsel), 0,
					 SLAB_ACCOUNT | SLAB_RECLAIM_ACCOUNT,
					 morsel_init_once);
	if (!morsel_cache)
		return -ENOMEM;
	mount = kern_mount(&morsel_fs);
	if (IS_ERR(mount))
		return PTR_ERR(mount);
	mount->mnt_sb->s_maxbytes = MAX_LFS_FILESIZE;
	morsel_mount = mount;
	return 0;
}
fs_initcall(morsel_init);
