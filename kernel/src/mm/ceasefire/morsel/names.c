// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels with names: the file system "morsel".
 *
 * A file in it is a morsel, and stays without a process that has it open. Folders, owners and
 * modes are as everywhere; there are no symbolic links, devices or pipes. Who may open a file
 * for reading only can neither write to it nor take anything away (M5, and file.c).
 *
 * A mount has no limit of its own: that of all morsels holds, for files and folders as well, and
 * the control group that made a morsel pays for it, also when all of its processes have gone.
 * Names are pinned by a reference to their dentry, as in other file systems without a disk.
 *
 * Locks: those of the VFS. Callers: the VFS.
 */
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/init.h>
#include <linux/pagemap.h>
#include <linux/security.h>
#include <linux/slab.h>

#include "morsel.h"

/* As of a folder that all use: names are removed by their owners only. */
#define MORSEL_ROOT_MODE	01777

/* Of the first folder. */
struct morsel_root {
	umode_t		mode;
	kuid_t		uid;
	kgid_t		gid;
};

static const struct inode_operations morsel_folder_iops;

static struct inode *morsel_named_inode(struct super_block *sb,
					struct inode *folder, umode_t mode)
{
	struct inode *inode = new_inode(sb);
	int err = 0;

	if (!inode)
		return ERR_PTR(-ENOMEM);
	inode->i_ino = get_next_ino();
	inode_init_owner(&nop_mnt_idmap, inode, folder, mode);
	simple_inode_init_ts(inode);
	if (S_ISDIR(mode)) {
		inode->i_op = &morsel_folder_iops;
		inode->i_fop = &simple_dir_operations;
		/* Its own entry ".". */
		inc_nlink(inode);
		err = morsel_count_object(morsel_of(inode));
	} else {
		err = morsel_setup(inode);
	}
	if (!err)
		return inode;
	iput(inode);
	return ERR_PTR(err);
}

/* With what security modules say of it. */
static struct inode *morsel_inode_in(struct inode *folder,
				     const struct qstr *name, umode_t mode)
{
	struct inode *inode = morsel_named_inode(folder->i_sb, folder, mode);
	int err;

	if (IS_ERR(inode))
		return inode;
	err = security_inode_init_security(inode, folder, name, NULL, NULL);
	if (!err || err == -EOPNOTSUPP)
		return inode;
	iput(inode);
	return ERR_PTR(err);
}

static int morsel_add(struct inode *folder, struct dentry *dentry, umode_t mode)
{
	struct inode *inode = morsel_inode_in(folder, &dentry->d_name, mode);

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	d_instantiate(dentry, inode);
	/* It is nowhere else; simple_unlink() puts it. */
	dget(dentry);
	inode_set_mtime_to_ts(folder, inode_set_ctime_current(folder));
	return 0;
}

static int morsel_create_named(struct mnt_idmap *idmap, struct inode *folder,
			       struct dentry *dentry, umode_t mode, bool excl)
{
	return morsel_allowed() ?: morsel_add(folder, dentry, mode | S_IFREG);
}

static int morsel_mkdir(struct mnt_idmap *idmap, struct inode *folder,
			struct dentry *dentry, umode_t mode)
{
	int err = morsel_add(folder, dentry, mode | S_IFDIR);

	if (!err)
		inc_nlink(folder);
	return err;
}

static int morsel_tmpfile(struct mnt_idmap *idmap, struct inode *folder,
			  struct file *file, umode_t mode)
{
	int err = morsel_allowed();
	struct inode *inode;

	if (!err) {
		inode = morsel_inode_in(folder, &file_dentry(file)->d_name,
					mode | S_IFREG);
		err = PTR_ERR_OR_ZERO(inode);
	}
	if (!err)
		d_tmpfile(file, inode);
	return finish_open_simple(file, err);
}

static const struct inode_operations morsel_folder_iops = {
	.create = morsel_create_named,
	.lookup = simple_lookup,
	.link = simple_link,
	.unlink = simple_unlink,
	.mkdir = morsel_mkdir,
	.rmdir = simple_rmdir,
	.rename = simple_rename,
	.tmpfile = morsel_tmpfile,
};

enum morsel_param {
	MORSEL_PARAM_MODE,
	MORSEL_PARAM_UID,
	MORSEL_PARAM_GID,
};

static const struct fs_parameter_spec morsel_params[] = {
	fsparam_u32oct("mode", MORSEL_PARAM_MODE),
	fsparam_uid("uid", MORSEL_PARAM_UID),
	fsparam_gid("gid", MORSEL_PARAM_GID),
	{}
};

static int morsel_parse_param(struct fs_context *fc, struct fs_parameter *param)
{
	struct morsel_root *root = fc->fs_private;
	struct fs_parse_result result;
	int which = fs_parse(fc, morsel_params, param, &result);

	switch (which) {
	case MORSEL_PARAM_MODE:
		if (result.uint_32 & ~S_IALLUGO)
			return invalfc(fc, "mode: no more than %o", S_IALLUGO);
		root->mode = result.uint_32;
		return 0;
	case MORSEL_PARAM_UID:
		root->uid = result.uid;
		return 0;
	case MORSEL_PARAM_GID:
		root->gid = result.gid;
		return 0;
	default:
		return which;
	}
}

static int morsel_fill_super(struct super_block *sb, struct fs_context *fc)
{
	const struct morsel_root *root = fc->fs_private;
	struct inode *inode;

	sb->s_maxbytes = MAX_LFS_FILESIZE;
	sb->s_blocksize = PAGE_SIZE;
	sb->s_blocksize_bits = PAGE_SHIFT;
	sb->s_magic = MORSEL_MAGIC;
	sb->s_op = &morsel_sops;
	sb->s_time_gran = 1;
	inode = morsel_named_inode(sb, NULL, S_IFDIR | root->mode);
	if (IS_ERR(inode))
		return PTR_ERR(inode);
	inode->i_uid = root->uid;
	inode->i_gid = root->gid;
	sb->s_root = d_make_root(inode);
	return sb->s_root ? 0 : -ENOMEM;
}

static int morsel_get_tree(struct fs_context *fc)
{
	return get_tree_nodev(fc, morsel_fill_super);
}

static void morsel_free_fc(struct fs_context *fc)
{
	kfree(fc->fs_private);
}

static const struct fs_context_operations morsel_context_ops = {
	.free = morsel_free_fc,
	.parse_param = morsel_parse_param,
	.get_tree = morsel_get_tree,
};

static int morsel_names_context(struct fs_context *fc)
{
	struct morsel_root *root;

	if (morsel_allowed() == -EOPNOTSUPP)
		return -EOPNOTSUPP;
	root = kzalloc(sizeof(*root), GFP_KERNEL);
	if (!root)
		return -ENOMEM;
	root->mode = MORSEL_ROOT_MODE;
	root->uid = GLOBAL_ROOT_UID;
	root->gid = GLOBAL_ROOT_GID;
	fc->fs_private = root;
	fc->ops = &morsel_context_ops;
	fc->s_iflags |= SB_I_NOEXEC | SB_I_NODEV;
	return 0;
}

static struct file_system_type morsel_names_fs = {
	.name = "morsel",
	.init_fs_context = morsel_names_context,
	.parameters = morsel_params,
	.kill_sb = kill_litter_super,
};

static int __init morsel_names_init(void)
{
	return register_filesystem(&morsel_names_fs);
}
fs_initcall(morsel_names_init);
