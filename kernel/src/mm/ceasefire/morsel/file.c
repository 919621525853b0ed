// SPDX-License-Identifier: GPL-2.0
/*
 * A morsel as a file: what read(), write(), lseek(), fallocate() and ioctl() do.
 *
 * MADV_REMOVE is fallocate(FALLOC_FL_PUNCH_HOLE) by the kernel. Who takes memory away needs a
 * descriptor that writes.
 *
 * Locks: the inode's, for the size and for writes. Callers: the VFS.
 */
#include <linux/fs.h>
#include <linux/falloc.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/splice.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include <linux/ceasefire_morsel.h>

#include "morsel.h"

/* Without a page there are zeroes. */
static ssize_t morsel_read_page(struct morsel *m, loff_t pos, size_t len,
				struct iov_iter *to)
{
	struct page *page = morsel_get_page(m, pos);
	size_t done;

	if (IS_ERR(page))
		return PTR_ERR(page);
	if (!page)
		return iov_iter_zero(len, to);
	done = copy_page_to_iter(page, offset_in_page(pos), len, to);
	put_page(page);
	return done;
}

static ssize_t morsel_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t total = 0;

	file_accessed(iocb->ki_filp);
	while (iov_iter_count(to)) {
		loff_t left = i_size_read(inode) - iocb->ki_pos;
		ssize_t done;
		size_t len;

		if (morsel_is_gone(morsel_of(inode)))
			return total ?: -ENODEV;
		if (left <= 0)
			break;
		len = min_t(u64, left, PAGE_SIZE - offset_in_page(iocb->ki_pos));
		len = min(len, iov_iter_count(to));
		done = morsel_read_page(morsel_of(inode), iocb->ki_pos, len, to);
		if (done < 0)
			return total ?: done;
		iocb->ki_pos += done;
		total += done;
		if (done < len)
			return total ?: -EFAULT;
		if (fatal_signal_pending(current))
			return total ?: -EINTR;
		cond_resched();
	}
	return total;
}

static ssize_t morsel_write_page(struct morsel *m, loff_t pos, size_t len,
				 struct iov_iter *from)
{
	struct page *page;
	size_t done;
	int err;

	/* Somebody may take it away again at once. */
	do {
		err = morsel_populate_page(m, pos) ?: morsel_own_page(m, pos);
		if (err)
			return morsel_errno(m, err);
		page = morsel_get_page(m, pos);
		if (IS_ERR(page))
			return PTR_ERR(page);
	} while (!page);
	done = copy_page_from_iter(page, offset_in_page(pos), len, from);
	put_page(page);
	return done ?: -EFAULT;
}

static ssize_t morsel_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t done, total = 0;

	inode_lock(inode);
	done = morsel_is_gone(morsel_of(inode)) ? -ENODEV :
	       generic_write_checks(iocb, from);
	/* It does not grow by a write: how large it is says how it is laid out. */
	if (done > 0 && iocb->ki_pos >= i_size_read(inode))
		done = -ENOSPC;
	if (done <= 0)
		goto out;
	done = file_modified(iocb->ki_filp);
	if (done)
		goto out;
	iov_iter_truncate(from, i_size_read(inode) - iocb->ki_pos);
	while (iov_iter_count(from)) {
		size_t len = min(PAGE_SIZE - offset_in_page(iocb->ki_pos),
				 iov_iter_count(from));

		done = morsel_write_page(morsel_of(inode), iocb->ki_pos, len,
					 from);
		if (done < 0)
			break;
		iocb->ki_pos += done;
		total += done;
		cond_resched();
	}
out:
	inode_unlock(inode);
	return total ?: done;
}

static loff_t morsel_seek(struct morsel *m, loff_t pos, bool data)
{
	u64 size = i_size_read(&m->inode);
	u64 at = morsel_page_start(m, pos);

	if (morsel_is_gone(m))
		return -ENODEV;
	if (pos < 0 || pos >= size)
		return -ENXIO;
	if (!morsel_find(m, &at, morsel_page_end(m, size), data))
		return data ? -ENXIO : size;
	return max_t(u64, at, pos);
}

static loff_t morsel_llseek(struct file *file, loff_t offset, int whence)
{
	struct inode *inode = file_inode(file);
	loff_t pos;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return generic_file_llseek(file, offset, whence);
	pos = morsel_seek(morsel_of(inode), offset, whence == SEEK_DATA);
	return pos < 0 ? pos : vfs_setpos(file, pos, inode->i_sb->s_maxbytes);
}

/* All that was taken away is free when it returns, page tables, too. */
static int morsel_fsync(struct file *file, loff_t start, loff_t end,
			int datasync)
{
	struct morsel *m = morsel_of(file_inode(file));

	CF_MUTATION(morsel_fsync_hasty, return 0);
	morsel_pool_empty(m);
	morsel_finish(m);
	morsel_settle_now(m);
	return 0;
}

static bool morsel_is_range(struct morsel *m, u64 offset, u64 length)
{
	u64 size = i_size_read(&m->inode);

	return offset <= size && length <= size - offset;
}

static long morsel_punch(struct morsel *m, u64 offset, u64 length)
{
	struct morsel_range range = { offset, length };
	u64 size = i_size_read(&m->inode);

	/* Of a mapping that ends behind the object; and as for other files. */
	if (offset >= size)
		return morsel_is_gone(m) ? -ENODEV : 0;
	range.length = min(length, size - offset);
	return morsel_errno(m, morsel_depopulate(m, &range, 1, false));
}

static long morsel_fallocate(struct file *file, int mode, loff_t offset,
			     loff_t len)
{
	struct inode *inode = file_inode(file);
	struct morsel *m = morsel_of(inode);
	u64 end = offset + len;
	int err = 0;

	if (mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)) {
		inode_lock(inode);
		err = file_modified(file) ?: morsel_punch(m, offset, len);
		inode_unlock(inode);
		return err;
	}
	if (mode & ~FALLOC_FL_KEEP_SIZE)
		return -EOPNOTSUPP;
	if (end > i_size_read(inode)) {
		if (mode & FALLOC_FL_KEEP_SIZE)
			return morsel_is_gone(m) ? -ENODEV : -EINVAL;
		inode_lock(inode);
		if (end > i_size_read(inode))
			err = inode_newsize_ok(inode, end) ?:
			      file_modified(file) ?: morsel_set_size(m, end);
		inode_unlock(inode);
		if (err)
			return err;
	}
	return morsel_errno(m, morsel_populate(m, offset, end));
}

static long morsel_ioc_geometry(struct file *file, void __user *arg)
{
	struct inode *inode = file_inode(file);
	struct morsel_geometry g;
	int err;

	if (copy_from_user(&g, arg, sizeof(g)))
		return -EFAULT;
	if (!(file->f_mode & FMODE_WRITE))
		return -EPERM;
	if (g.flags & ~MORSEL_ALLOW_LAZY || g.address & (g.unit - 1) ||
	    g.address >= TASK_SIZE)
		return -EINVAL;
	inode_lock(inode);
	err = morsel_set_geometry(morsel_of(inode), &g);
	inode_unlock(inode);
	return err;
}

static long morsel_ioc_stat(struct file *file, void __user *arg)
{
	struct morsel_stat stat;

	morsel_get_stat(morsel_of(file_inode(file)), &stat);
	return copy_to_user(arg, &stat, sizeof(stat)) ? -EFAULT : 0;
}

/* The ranges of a call, all of which are looked at before one is touched. */
static struct morsel_range *morsel_get_ranges(struct morsel *m,
					      const struct morsel_vec *vec,
					      u32 flags)
{
	struct morsel_range *ranges;
	unsigned int i;

	if (vec->flags & ~flags)
		return ERR_PTR(-EINVAL);
	if (morsel_is_gone(m))
		return ERR_PTR(-ENODEV);
	if (vec->nr > MORSEL_RANGES_MAX)
		return ERR_PTR(-E2BIG);
	ranges = memdup_array_user(u64_to_user_ptr(vec->ranges), vec->nr,
				   sizeof(*ranges));
	if (IS_ERR(ranges))
		return ranges;
	for (i = 0; i < vec->nr; i++) {
		if (morsel_is_range(m, ranges[i].offset, ranges[i].length))
			continue;
		kfree(ranges);
		return ERR_PTR(morsel_is_gone(m) ? -ENODEV : -EINVAL);
	}
	return ranges;
}

static int morsel_populate_vec(struct morsel *m,
			       const struct morsel_range *ranges,
			       struct morsel_vec *vec)
{
	unsigned int i;

	for (i = 0; i < vec->nr; i++) {
		u64 end = ranges[i].offset + ranges[i].length;
		int err = morsel_populate(m, ranges[i].offset, end);

		if (err)
			return morsel_errno(m, err);
		vec->done = i + 1;
	}
	return 0;
}

/* Who takes from a lazy morsel in the ordinary way is alone; see epochs.c. */
static int morsel_depopulate_vec(struct morsel *m,
				 const struct morsel_range *ranges,
				 struct morsel_vec *vec)
{
	struct inode *inode = &m->inode;
	bool done = false;
	int err = 0;

	if (vec->flags & MORSEL_LAZY && !m->lazy)
		return -EINVAL;
	/* Against a size that changes. */
	inode_lock_shared(inode);
	if (morsel_is_gone(m))
		err = -ENODEV;
	else if (vec->flags & MORSEL_LAZY)
		done = morsel_lazy_depopulate(m, ranges, vec->nr);
	else if (!m->lazy)
		err = morsel_depopulate(m, ranges, vec->nr,
					vec->flags & MORSEL_ASYNC);
	inode_unlock_shared(inode);
	if (!err && !done && m->lazy) {
		inode_lock(inode);
		err = morsel_is_gone(m) ? -ENODEV :
		      morsel_depopulate(m, ranges, vec->nr,
					vec->flags & MORSEL_ASYNC);
		inode_unlock(inode);
	}
	if (!err)
		vec->done = vec->nr;
	return morsel_errno(m, err);
}

static bool morsel_may_take(struct file *file)
{
	CF_MUTATION(morsel_any_takes, return true);
	return file->f_mode & FMODE_WRITE;
}

static long morsel_ioc_vec(struct file *file, unsigned int cmd,
			   struct morsel_vec __user *arg)
{
	struct morsel *m = morsel_of(file_inode(file));
	struct morsel_range *ranges;
	struct morsel_vec vec;
	long err;

	if (!morsel_may_take(file))
		return -EPERM;
	if (copy_from_user(&vec, arg, sizeof(vec)))
		return -EFAULT;
	vec.done = 0;
	ranges = morsel_get_ranges(m, &vec, cmd == MORSEL_IOC_DEPOPULATE ?
				   MORSEL_ASYNC | MORSEL_LAZY : 0);
	if (IS_ERR(ranges))
		return PTR_ERR(ranges);
	err = cmd == MORSEL_IOC_POPULATE ?
	      morsel_populate_vec(m, ranges, &vec) :
	      morsel_depopulate_vec(m, ranges, &vec);
	kfree(ranges);
	if (put_user(vec.done, &arg->done))
		err = -EFAULT;
	return err;
}

static long morsel_ioc_destroy(struct file *file, const u32 __user *arg)
{
	struct inode *inode = file_inode(file);
	u32 flags;
	int err;

	if (!morsel_may_take(file))
		return -EPERM;
	if (get_user(flags, arg))
		return -EFAULT;
	if (flags & ~MORSEL_FORCE)
		return -EINVAL;
	inode_lock(inode);
	err = morsel_destroy(morsel_of(inode), flags & MORSEL_FORCE);
	inode_unlock(inode);
	return err;
}

static long morsel_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case MORSEL_IOC_GEOMETRY:
		return morsel_ioc_geometry(file, user);
	case MORSEL_IOC_STAT:
		return morsel_ioc_stat(file, user);
	case MORSEL_IOC_POPULATE:
	case MORSEL_IOC_DEPOPULATE:
		return morsel_ioc_vec(file, cmd, user);
	case MORSEL_IOC_DESTROY:
		return morsel_ioc_destroy(file, user);
	default:
		return -ENOTTY;
	}
}

const struct file_operations morsel_fops = {
	.owner = THIS_MODULE,
	.llseek = morsel_llseek,
	.read_iter = morsel_read_iter,
	.write_iter = morsel_write_iter,
	.splice_read = copy_splice_read,
	.splice_write = iter_file_splice_write,
	.unlocked_ioctl = morsel_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = morsel_mmap,
	.get_unmapped_area = morsel_get_unmapped_area,
	.fallocate = morsel_fallocate,
	.remap_file_range = morsel_remap_file_range,
	.fsync = morsel_fsync,
	.show_fdinfo = morsel_show_fdinfo,
};
